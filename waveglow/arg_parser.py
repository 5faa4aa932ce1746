"""WaveGlow's options on the command line."""

import argparse
from dataclasses import replace

from torch import nn

from common.audio.arguments import audio_config_from_args
from common.audio.mel import MelExtractor
from common.cli import ArgumentParser, positive_float, positive_int
from common.config import AudioConfig
from common.errors import OptionError
from common.training.optim import Optimization
from common.training.settings import Settings
from waveglow.model import ModelConfig

# Published recipe (scripts/train_waveglow.sh); those of the common options are for other models.
_DEFAULTS = {
    "epochs": 1001,
    "batch_size": 4,
    "optimizer": "adam",
    "learning_rate": 1e-4,
    "weight_decay": 0.0,
    "grad_clip_thresh": float("inf"),
    "epochs_per_checkpoint": 50,
    "samples_interval": 50,
}
# Every published script trains with it; the original's option, if it is left out, means 4000.
SEGMENT_LENGTH = 8000  # samples


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of training and architecture; defaults are those of the published recipe."""
    parser.set_defaults(**_DEFAULTS)
    group = parser.add_argument_group("WaveGlow")
    group.add_argument(
        "--segment-length", type=positive_int, default=SEGMENT_LENGTH, help="samples of a training segment"
    )
    group.add_argument(
        "--sigma", type=positive_float, default=1.0, help="standard deviation of the noise that sound becomes"
    )
    group = parser.add_argument_group(
        "architecture of WaveGlow",
        "an option that is left out takes the value in brackets, or that of the checkpoint to go on from",
    )

    def add(option: str, field: str, description: str, *aliases: str) -> None:
        text = f"{description} [{getattr(ModelConfig(), field)}]"
        group.add_argument(option, *aliases, dest=field, type=positive_int, default=argparse.SUPPRESS, help=text)

    add("--flows", "n_flows", "steps from sound to noise")
    add("--groups", "n_group", "samples in a group, which are the flows' channels")
    add("--early-every", "n_early_every", "flows after which some channels are noise already")
    add("--early-size", "n_early_size", "how many channels are")
    add("--wn-channels", "wn_channels", "width of the networks in the flows; published models have 256 or 512")
    add("--wn-kernel-size", "wn_kernel_size", "size of their convolutions")
    add("--wn-layers", "wn_layers", "their layers, whose dilations double")


def settings_from_args(args: argparse.Namespace) -> Settings:
    """Mels as Tacotron 2's, of recordings as they are.

    Raises:
        OptionError: a segment is too short for a mel.
    """
    audio = audio_config_from_args(args)
    shortest = MelExtractor(audio).min_samples
    if args.segment_length < shortest:
        raise OptionError(f"--segment-length {args.segment_length}: a mel needs at least {shortest} samples")
    rate = args.learning_rate
    optimization = Optimization(lambda iteration, epoch: rate, betas=(0.9, 0.999), eps=1e-8)
    return Settings(audio=audio, text=None, optimization=optimization)


def config_from_args(args: argparse.Namespace, audio: AudioConfig, *, base: ModelConfig | None = None) -> ModelConfig:
    """The architecture that parsed options describe, for mels as ``audio``'s.

    ``base``, of the checkpoint to go on from, takes the place of the default, so that options need not repeat it.

    Raises:
        OptionError: an option has no sensible value, or two do not fit together.
    """
    given = {name: getattr(args, name) for name in vars(ModelConfig()) if hasattr(args, name)}
    return replace(base or ModelConfig(), **given | {"n_mel_channels": audio.n_mels})


def set_up_networks(networks: dict[str, nn.Module], args: argparse.Namespace, *, new: bool) -> None:
    """Options say nothing of the network beyond its architecture."""
