"""Options of the toy voice."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from common.audio.arguments import audio_config_from_args
from common.options import option
from common.text.arguments import add_text_arguments, text_config_from_args
from common.training import Optimization, Recipe, TrainingSetup

RECIPE = Recipe(
    epochs=2, batch_size=2, optimizer="adam", learning_rate=0.01, weight_decay=0.0, grad_clip_thresh=float("inf")
)


@dataclass(frozen=True)
class TrainingOptions:
    """What the toy voice's training takes."""

    dataset_path: Path
    frames: int
    unknown_symbols: str


@dataclass(frozen=True)
class InferenceOptions:
    """What its inference takes."""

    toy_pace: float = option(1.0, "speed")


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    """Add its options to those of ``train.py``."""
    parser.add_argument_group("toy voice").add_argument("--frames", type=int, default=3, help="of each symbol")
    add_text_arguments(parser)


def parse_training(args: argparse.Namespace) -> TrainingSetup:
    """The options, once."""
    options = TrainingOptions(args.dataset_path, args.frames, args.unknown_symbols)
    optimization = Optimization(schedule=lambda iteration, epoch: args.learning_rate)
    return TrainingSetup(options, audio_config_from_args(args), text_config_from_args(args), optimization)
