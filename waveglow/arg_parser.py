"""WaveGlow's training options on the command line, and its published recipe."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from common.audio import MelExtractor
from common.checkpoints.arguments import add_voice_argument, training_audio_from_args
from common.cli import ArgumentParser, positive_int, real_number, values_of
from common.config import AudioConfig
from common.errors import OptionError
from common.training import Optimization, Recipe, TrainingSetup
from waveglow.model import OPTIONS, ModelConfig

# As NVIDIA's README.md and platform files, in float32; with AMP their batches are of 10, and the gradient's norm is
# clipped to 65504.
RECIPE = Recipe(
    epochs=1001,
    batch_size=4,
    optimizer="adam",
    learning_rate=1e-4,
    weight_decay=0.0,
    grad_clip_thresh=float("inf"),
    samples_interval=50,
)


@dataclass(frozen=True)
class TrainingOptions:
    """WaveGlow's own options of training."""

    dataset_path: Path
    segment_length: int  # samples
    seed: int
    sigma: float  # standard deviation of the noise that sound becomes
    architecture: Mapping[str, int]  # the fields of ModelConfig that were given


def add_training_arguments(parser: ArgumentParser) -> None:
    """Add the options of training and architecture."""
    add = parser.add_argument_group("WaveGlow").add_argument
    # Every published script trains with it; the original's default is 4000.
    add("--segment-length", type=positive_int, default=8000, help="samples of a training segment")
    add("--sigma", type=real_number(1e-3, 1e3), default=1.0, help="standard deviation of the noise that sound becomes")
    add_voice_argument(add)
    group = parser.add_argument_group(
        "architecture of WaveGlow",
        "an option that is left out takes the value in brackets, or that of the checkpoint to resume from",
    )
    for field, (option, description) in OPTIONS.items():
        text = f"{description} [{getattr(ModelConfig(), field)}]"
        group.add_argument(option, dest=field, type=positive_int, default=argparse.SUPPRESS, help=text)


def parse_training(args: argparse.Namespace) -> TrainingSetup:
    """The training run that the options describe; the mels are those of --for-voice or of the corpus.

    Raises:
        OptionError: a segment is too short for a mel, or the voice has other mels than options or files say.
    """
    audio = training_audio_from_args(args)
    shortest = MelExtractor(audio).min_samples
    if args.segment_length < shortest:
        raise OptionError(f"--segment-length {args.segment_length}: a mel needs at least {shortest} samples")
    options = TrainingOptions(**values_of(args, TrainingOptions), architecture=values_of(args, ModelConfig))
    rate = args.learning_rate
    optimization = Optimization(lambda iteration, epoch: rate, betas=(0.9, 0.999), eps=1e-8)
    return TrainingSetup(options=options, audio=audio, text=None, optimization=optimization)


def model_config(
    options: TrainingOptions, audio: AudioConfig, text: None = None, *, base: ModelConfig | None = None
) -> ModelConfig:
    """The architecture that the options describe, for mels as ``audio``'s.

    ``base``, of the checkpoint to resume from, takes the place of the default, so that options need not repeat it.

    Raises:
        OptionError: an option has no sensible value, or two do not fit together.
    """
    return replace(base or ModelConfig(), **options.architecture, n_mel_channels=audio.n_mels)
