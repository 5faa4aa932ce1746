"""The harmonic vocoder's training options on the command line, and its recipe."""

import argparse
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common.checkpoints.arguments import add_voice_argument, training_audio_from_args
from common.cli import ArgumentParser, option_of, positive_int, values_of
from common.config import AudioConfig
from common.errors import OptionError
from common.nn import DiscriminatorConfig
from common.training import EpochPolicy, Optimization, Recipe, Schedule, TrainingSetup
from common.training.arguments import add_discriminator_arguments
from harmonic.config import OPTIONS, ModelConfig

PITCH_CACHE = "pitch_cache"  # folder of a dataset, unless --pitch-cache names another
_WARM_UP = 50  # updates
RECIPE = Recipe(
    epochs=400,
    batch_size=8,
    optimizer="adamw",
    learning_rate=1e-3,
    weight_decay=0.01,
    grad_clip_thresh=5.0,
    ema_decay=0.99,
    validation_interval=10,
    samples_interval=100,
)


@dataclass(frozen=True)
class TrainingOptions:
    """The harmonic vocoder's own options of training."""

    dataset_path: Path
    segment_frames: int  # mel frames
    seed: int
    pitch_cache: Path | None  # None: in the dataset's folder
    architecture: Mapping[str, Any]  # the fields of ModelConfig that were given
    adversarial: bool
    discriminators: Mapping[str, Any]  # the fields of DiscriminatorConfig that were given


def add_training_arguments(parser: ArgumentParser) -> None:
    """Add the options of training and architecture."""
    add = parser.add_argument_group("Harmonic").add_argument
    add("--segment-frames", type=positive_int, default=64, help="mel frames of a training segment")
    cache = f"folder that keeps the pitch of recordings (default: {PITCH_CACHE} in the dataset's folder)"
    add("--pitch-cache", type=Path, help=cache)
    add_voice_argument(add)
    text = "train against HiFi-GAN's discriminators, too; also from a checkpoint that was trained without them"
    add("--adversarial", action="store_true", help=text)
    group = parser.add_argument_group(
        "architecture of Harmonic",
        "an option that is left out takes the value in brackets, or that of the checkpoint to resume from",
    )
    for field, (option, description) in OPTIONS.items():
        text = f"{description} [{getattr(ModelConfig(), field)}]"
        group.add_argument(option, dest=field, type=positive_int, default=argparse.SUPPRESS, help=text)
    add_discriminator_arguments(parser)


def parse_training(args: argparse.Namespace) -> TrainingSetup:
    """The training run that the options describe; the mels are those of --for-voice or of the corpus.

    Raises:
        OptionError: a segment is shorter than the loss's longest window, discriminators are described and not asked
            for, or the voice has other mels than options or files say.
    """
    audio = training_audio_from_args(args)
    shortest = -(-2 * audio.filter_length // audio.hop_length)
    if args.segment_frames < shortest:
        raise OptionError(f"--segment-frames {args.segment_frames}: the loss needs at least {shortest} such frames")
    discriminators = values_of(args, DiscriminatorConfig)
    if discriminators and not args.adversarial:
        raise OptionError(f"{option_of(next(iter(discriminators)))} is for --adversarial; add that, or leave it out")
    options = TrainingOptions(
        **values_of(args, TrainingOptions), architecture=values_of(args, ModelConfig), discriminators=discriminators
    )
    schedule = EpochPolicy(lambda steps: cosine_schedule(args.learning_rate, n_updates=args.epochs * steps))
    return TrainingSetup(
        options=options,
        audio=audio,
        text=None,
        optimization=Optimization(schedule, betas=(0.9, 0.99), eps=1e-8),
        same_shapes=True,
    )


def cosine_schedule(learning_rate: float, *, n_updates: int) -> Schedule:
    """Linear warm-up of ``_WARM_UP`` updates, then half a cosine down to a hundredth at the last."""

    def rate(iteration: int, epoch: int) -> float:
        done = min(max(iteration - _WARM_UP, 0) / max(n_updates - _WARM_UP, 1), 1.0)
        return learning_rate * min(iteration / _WARM_UP, 1.0) * (0.505 + 0.495 * math.cos(math.pi * done))

    return rate


def model_config(
    options: TrainingOptions, audio: AudioConfig, text: None = None, *, base: ModelConfig | None = None
) -> ModelConfig:
    """The architecture that the options describe, for mels as ``audio``'s.

    ``base``, of the checkpoint to resume from, takes the place of the default, so that options need not repeat it.

    Raises:
        OptionError: an option has no sensible value.
    """
    config = replace(base or ModelConfig(), **options.architecture, n_mel_channels=audio.n_mels)
    if options.adversarial:
        discriminators = replace(config.discriminators or DiscriminatorConfig(), **options.discriminators)
        config = replace(config, discriminators=discriminators)
    return config
