"""Options that concern checkpoints: which weights to infer with, and the voice that a vocoder is for."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.checkpoints.command_line import WeightsOptions
from common.options import add_options


def add_ema_argument(parser: argparse._ActionsContainer) -> None:
    """Add ``--ema`` and ``--no-ema``; the value is that of ``ema`` of `common.checkpoints.open_checkpoint`."""
    add_options(parser, WeightsOptions)


def add_voice_argument(add: Callable[..., Any]) -> None:
    """Add the option of a vocoder that names the voice it is for."""
    add("--for-voice", type=Path, help="checkpoint of a text-to-mel model, ours or published, whose mels to train for")
