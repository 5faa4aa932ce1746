"""Options that concern checkpoints: which weights to infer with, and the voice that a vocoder is for."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any


def add_ema_argument(parser: argparse._ActionsContainer) -> None:
    """Add ``--ema`` and ``--no-ema``; the value is that of ``ema`` of `common.checkpoints.open_checkpoint`."""
    parser.add_argument(
        "--ema",
        action=argparse.BooleanOptionalAction,
        help="use the EMA weights, which one checkpoint must have, or with --no-ema the raw ones; if not given, the "
        "EMA weights of each checkpoint that has them",
    )


def add_voice_argument(add: Callable[..., Any]) -> None:
    """Add the option of a vocoder that names the voice it is for."""
    add("--for-voice", type=Path, help="checkpoint of a text-to-mel model, ours or published, whose mels to train for")
