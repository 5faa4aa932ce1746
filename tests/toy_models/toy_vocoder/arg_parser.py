"""Options of the toy vocoder."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from common.audio.arguments import audio_config_from_args
from common.options import option
from common.training import Optimization, Recipe, TrainingSetup

RECIPE = Recipe(
    epochs=2, batch_size=2, optimizer="adam", learning_rate=0.01, weight_decay=0.0, grad_clip_thresh=float("inf")
)


@dataclass(frozen=True)
class TrainingOptions:
    """What the toy vocoder's training takes."""

    dataset_path: Path
    channels: int
    segment_frames: int
    seed: int


@dataclass(frozen=True)
class InferenceOptions:
    """What its inference takes."""

    toy_gain: float = option(1.0, "loudness")


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    """Add its options to those of ``train.py``."""
    group = parser.add_argument_group("toy vocoder")
    group.add_argument("--toy-channels", type=int, default=8, help="width of the network")
    group.add_argument("--segment-frames", type=int, default=16, help="length of a segment")


def parse_training(args: argparse.Namespace) -> TrainingSetup:
    """The options, once."""
    options = TrainingOptions(args.dataset_path, args.toy_channels, args.segment_frames, args.seed)
    optimization = Optimization(schedule=lambda iteration, epoch: args.learning_rate)
    return TrainingSetup(options, audio_config_from_args(args), None, optimization, same_shapes=True)
