"""Tacotron 2's options of inference on the command line."""

import argparse
from pathlib import Path

from torch import nn

from common.cli import positive_int, real_number
from common.synthesis import Controls
from tacotron2.config import ModelConfig

_THRESHOLD = real_number(1e-6, 1 - 1e-6)  # a probability that can be above and below it


def add_inference_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of decoding."""
    group = parser.add_argument_group("speaking with Tacotron 2", "the defaults are those of the checkpoint")
    longest = "frames after which a phrase is cut that the model has not ended; a warning names it"
    group.add_argument("--max-decoder-steps", type=positive_int, help=longest)
    group.add_argument("--gate-threshold", type=_THRESHOLD, help="probability, below 1, at which a phrase ends")


def parse_inference(args: argparse.Namespace) -> Controls:
    """How to decode; None: as the checkpoint."""
    return Controls(max_decoder_steps=args.max_decoder_steps, gate_threshold=args.gate_threshold)


def controls(options: Controls, network: nn.Module, config: ModelConfig, *, where: Path) -> Controls:
    """The options are controls, whatever the checkpoint."""
    return options
