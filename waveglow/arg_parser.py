"""WaveGlow's options of training and inference on the command line, and its published recipe."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from common.audio.arguments import audio_config_from_args
from common.audio.mel import MelExtractor
from common.cli import ArgumentParser, non_negative_float, positive_float, positive_int
from common.config import AudioConfig
from common.errors import OptionError
from common.synthesis.vocoder import VocoderSettings
from common.training.optim import Optimization
from common.training.settings import Recipe, TrainingSetup
from waveglow.model import OPTIONS, SIGMA_INFER, ModelConfig

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
# Every published script trains with it; the original's default is 4000.
SEGMENT_LENGTH = 8000  # samples
_DESCRIPTIONS = {
    "n_flows": "steps from sound to noise",
    "n_group": "samples in a group, which are the flows' channels",
    "n_early_every": "flows after which some channels are output",
    "n_early_size": "how many channels are",
    "wn_channels": "channels of the networks in the flows; published models have 256 or 512",
    "wn_kernel_size": "size of their convolutions",
    "wn_layers": "their layers, whose dilations double",
}


@dataclass(frozen=True)
class TrainingOptions:
    """WaveGlow's own options of training."""

    dataset_path: Path
    segment_length: int  # samples
    seed: int
    sigma: float  # standard deviation of the noise that sound becomes
    architecture: Mapping[str, int]  # the fields of ModelConfig that were given


@dataclass(frozen=True)
class InferenceOptions:
    """WaveGlow's own options of inference."""

    wn_channels: int | None  # None: any
    sigma: float
    chunk_frames: int | None  # None: all at once


def add_training_arguments(parser: ArgumentParser) -> None:
    """Add the options of training and architecture."""
    group = parser.add_argument_group("WaveGlow")
    group.add_argument(
        "--segment-length", type=positive_int, default=SEGMENT_LENGTH, help="samples of a training segment"
    )
    group.add_argument(
        "--sigma", type=positive_float, default=1.0, help="standard deviation of the noise that sound becomes"
    )
    group = parser.add_argument_group(
        "architecture of WaveGlow",
        "an option that is left out takes the value in brackets, or that of the checkpoint to resume from",
    )
    for field, description in _DESCRIPTIONS.items():
        text = f"{description} [{getattr(ModelConfig(), field)}]"
        group.add_argument(OPTIONS[field], dest=field, type=positive_int, default=argparse.SUPPRESS, help=text)


def parse_training(args: argparse.Namespace) -> TrainingSetup:
    """The training run that the options describe; the mels are Tacotron 2's, of recordings as they are.

    Raises:
        OptionError: a segment is too short for a mel.
    """
    audio = audio_config_from_args(args)
    shortest = MelExtractor(audio).min_samples
    if args.segment_length < shortest:
        raise OptionError(f"--segment-length {args.segment_length}: a mel needs at least {shortest} samples")
    options = TrainingOptions(
        dataset_path=args.dataset_path,
        segment_length=args.segment_length,
        seed=args.seed,
        sigma=args.sigma,
        architecture={name: getattr(args, name) for name in _DESCRIPTIONS if hasattr(args, name)},
    )
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


def add_inference_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of inference."""
    group = parser.add_argument_group("speaking with WaveGlow")
    group.add_argument(
        "--wn-channels", type=positive_int, help="channels of its networks; a checkpoint of other widths is refused"
    )
    group.add_argument(
        "--sigma-infer",
        type=non_negative_float,
        default=SIGMA_INFER,
        help="standard deviation of the noise that becomes sound",
    )
    group.add_argument(
        "--chunk-frames",
        type=positive_int,
        help="compute so many mel frames at a time, in memory that hardly grows with the length; the sound is the same",
    )


def parse_inference(args: argparse.Namespace) -> InferenceOptions:
    """The options of inference."""
    return InferenceOptions(wn_channels=args.wn_channels, sigma=args.sigma_infer, chunk_frames=args.chunk_frames)


def inference_settings(
    options: InferenceOptions | None, config: ModelConfig, *, seed: int, where: Path
) -> VocoderSettings:
    """Settings of ``WaveGlow.infer``; without ``options``, the defaults. ``config`` is that of the file ``where``.

    Raises:
        OptionError: the checkpoint is not as wide as --wn-channels.
    """
    options = options or InferenceOptions(wn_channels=None, sigma=SIGMA_INFER, chunk_frames=None)
    if options.wn_channels not in (None, config.wn_channels):
        raise OptionError(
            f"--wn-channels {options.wn_channels}: {where} has {config.wn_channels}; leave the option out, or give "
            "another checkpoint"
        )
    settings = {"sigma": options.sigma, "seed": seed, "chunk_frames": options.chunk_frames}
    return VocoderSettings(infer=settings, silent={"sigma": 0.0})
