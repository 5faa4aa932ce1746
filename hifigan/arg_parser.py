"""HiFi-GAN's options on the command line."""

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from common.audio.arguments import audio_config_from_args, features_config
from common.cli import ArgumentParser, positive_float, positive_int
from common.config import AudioConfig, audio_preset
from common.errors import InputError, OptionError
from common.training.optim import Optimization, exponential_schedule
from common.training.settings import Settings
from hifigan.data_function import SEGMENT_SIZE, segment_size
from hifigan.json_config import read_json_config, share
from hifigan.model import PRESETS, ModelConfig

PEAK = 0.95  # recordings are scaled to this largest sample, unless the vocoder is fine-tuned
_ADAM_BETAS = (0.8, 0.99)
_LARGEST_RATE = 8  # of one upsampling, where the rates are chosen to fit a hop length
# Published recipe (scripts/train_lj22khz.sh); those of the common options are for other models.
_DEFAULTS = {
    "epochs": 1000,
    "batch_size": 16,
    "optimizer": "adamw",
    "learning_rate": 3e-4,
    "weight_decay": 0.01,
    "grad_clip_thresh": float("inf"),
    "epochs_per_checkpoint": 10,
    "validation_interval": 10,
    "samples_interval": 100,
    "keep_milestones": tuple(range(1000, 10001, 1000)),
}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of training and architecture; defaults are those of the published recipe and of v1."""
    parser.set_defaults(**_DEFAULTS)
    group = parser.add_argument_group("HiFi-GAN")
    group.add_argument(
        "--lr-decay", type=positive_float, default=0.9998, help="factor of the learning rate, each epoch"
    )
    group.add_argument(
        "--adam-betas", type=share, nargs=2, default=_ADAM_BETAS, metavar=("B1", "B2"), help="decay of Adam's averages"
    )
    group.add_argument(
        "--segment-size",
        type=positive_int,
        help=f"samples of a training segment; {SEGMENT_SIZE}, or as many whole hops as fit in, if not given",
    )
    group.add_argument(
        "--mel-fmax-loss", type=positive_float, help="Hz, upper end of the mel loss's band; half the rate if not given"
    )
    group.add_argument(
        "--fine-tuning",
        action="store_true",
        help="go on from a trained vocoder with the mels of --input-mels-dir, and recordings as they are",
    )
    group.add_argument(
        "--input-mels-dir", type=Path, help="folder with the mel of each recording; they are computed if not given"
    )
    group.add_argument(
        "--fine-tune-lr-factor", type=positive_float, default=1.0, help="factor of the learning rate in fine-tuning"
    )
    group.add_argument(
        "--no-amp-grouped-conv",
        action="store_true",
        help="compute grouped convolutions in float32 with --amp, which is faster on some GPUs",
    )
    group.add_argument(
        "--concat-fwd",
        action=argparse.BooleanOptionalAction,
        help="discriminators judge recordings and generated sound in one pass; on with --cuda if not given",
    )
    _add_architecture(parser)


def _add_architecture(parser: ArgumentParser) -> None:
    group = parser.add_argument_group(
        "architecture of HiFi-GAN", "an option that is left out takes the preset's value; for v1 that in brackets"
    )
    group.add_argument("--preset", choices=tuple(PRESETS), default="v1", help="the authors' architectures")
    group.add_argument(
        "--hifigan-config",
        type=Path,
        help="JSON in the form of the authors' config.json; its values take the place of defaults",
    )
    parser.set_defaults_reader("--hifigan-config", partial(read_json_config, adam_betas=_ADAM_BETAS))
    v1 = PRESETS["v1"]

    def add(field: str, description: str, **kwargs: Any) -> None:
        value = getattr(v1, field)
        shown = " ".join(map(_text, value)) if isinstance(value, tuple) else value
        nargs = "+" if isinstance(value, tuple) else None
        option = "--" + field.replace("_", "-")
        kwargs = {"type": positive_int, "nargs": nargs, "default": argparse.SUPPRESS} | kwargs
        group.add_argument(option, help=f"{description} [{shown}]", **kwargs)

    add("upsample_rates", "factors whose product is the hop length; chosen to fit it if not given")
    add("upsample_kernel_sizes", "kernel sizes of the upsamplings; twice the rate if those are given alone")
    add("upsample_initial_channel", "channels before the first upsampling, which each of them halves")
    add("resblock", "1: pairs of convolutions, 2: single ones", type=str, choices=("1", "2"))
    add("resblock_kernel_sizes", "kernel sizes of the residual blocks side by side")
    add("resblock_dilation_sizes", "dilations of each of them, parted by commas", type=_dilations, metavar="D,D,D")
    add("mpd_periods", "periods of the multi-period discriminator, samples")
    add("mpd_channels", "channels of its convolutions")
    add("msd_channels", "channels of the multi-scale discriminator's convolutions")
    add("msd_groups", "groups of these convolutions")
    add("msd_pooling_padding", "samples added around each pooling; NVIDIA's checkpoints: 1", type=int)


def settings_from_args(args: argparse.Namespace) -> Settings:
    """Mels as HiFi-GAN's, of recordings scaled to one peak; in fine-tuning those of the folder with the mels.

    Raises:
        OptionError: options that do not go together.
    """
    if args.fine_tuning and args.input_mels_dir is None:
        raise OptionError("--fine-tuning needs --input-mels-dir, the mels that scripts/extract_fine_tune_mels.sh makes")
    if args.fine_tuning and args.checkpoint_path is None and not args.resume:
        raise OptionError("--fine-tuning goes on from a trained vocoder; give it with --checkpoint-path (or --resume)")
    if not args.fine_tuning and args.fine_tune_lr_factor != 1:
        raise OptionError("--fine-tune-lr-factor is for --fine-tuning; add that, or leave it out")
    if args.no_amp_grouped_conv and not args.amp:
        raise OptionError("--no-amp-grouped-conv excepts layers from --amp; add --amp")
    audio = audio_config_from_args(args, base=_base_audio(args))
    if segment_size(args, audio) % audio.hop_length:
        raise OptionError(
            f"--segment-size {args.segment_size}: expected a multiple of the hop length, {audio.hop_length} samples"
        )
    rate = args.learning_rate * (args.fine_tune_lr_factor if args.fine_tuning else 1)
    optimization = Optimization(exponential_schedule(rate, decay=args.lr_decay), betas=tuple(args.adam_betas), eps=1e-8)
    adaptable = ("framing", "peak") if args.fine_tuning else ()
    return Settings(audio=audio, text=None, optimization=optimization, same_shapes=True, adaptable=adaptable)


def _base_audio(args: argparse.Namespace) -> AudioConfig:
    preset = audio_preset(getattr(args, "sampling_rate", AudioConfig().sampling_rate))
    if args.input_mels_dir is not None:
        if not args.input_mels_dir.is_dir():
            raise InputError(f"{args.input_mels_dir}: no such folder of mels")
        found = features_config(args.input_mels_dir)
        if found is not None:
            return found
    if args.fine_tuning:
        return preset  # mels of the published generators, which say nothing of themselves
    return replace(preset, framing="aligned", peak=PEAK)


def config_from_args(args: argparse.Namespace, audio: AudioConfig, *, base: ModelConfig | None = None) -> ModelConfig:
    """The architecture that parsed options describe, for mels as ``audio``'s.

    ``base``, of the checkpoint to go on from, takes the place of the preset, so that options need not repeat it.

    Raises:
        OptionError: an option has no sensible value, two do not fit together, or no rates make up the hop length.
    """
    given = {name: getattr(args, name) for name in vars(ModelConfig()) if hasattr(args, name)}
    given = {name: _tuple(value) for name, value in given.items()} | {"n_mel_channels": audio.n_mels}
    if base is not None:
        return replace(base, **given)
    preset = PRESETS[args.preset]
    if "upsample_rates" not in given and "upsample_kernel_sizes" not in given:
        given["upsample_rates"] = fitting_rates(audio.hop_length, preset.upsample_rates)
    if "upsample_rates" in given and "upsample_kernel_sizes" not in given:
        given["upsample_kernel_sizes"] = tuple(2 * rate + rate % 2 for rate in given["upsample_rates"])
    return replace(preset, **given)


def fitting_rates(hop_length: int, preset: tuple[int, ...]) -> tuple[int, ...]:
    """The preset's rates if they make up the hop length, else as many that do, falling, the first as large as may be.

    Raises:
        OptionError: there are none.
    """
    product = 1
    for rate in preset:
        product *= rate
    if product == hop_length:
        return preset
    rates = _factors(hop_length, len(preset), largest=_LARGEST_RATE)
    if rates is None:
        raise OptionError(
            f"--hop-length {hop_length}: not a product of {len(preset)} upsampling rates from 2 to {_LARGEST_RATE}; "
            "give --upsample-rates, or choose another hop length"
        )
    return rates


def _factors(number: int, count: int, *, largest: int) -> tuple[int, ...] | None:
    """``number`` as a product of ``count`` falling factors from 2 to ``largest``."""
    if count == 0:
        return () if number == 1 else None
    for factor in range(largest, 1, -1):
        if number % factor == 0:
            rest = _factors(number // factor, count - 1, largest=factor)
            if rest is not None:
                return (factor, *rest)
    return None


def set_up_networks(networks: dict[str, nn.Module], args: argparse.Namespace, *, new: bool) -> None:
    """What options say of the networks beyond their architecture; ``new`` ones hold what PyTorch drew."""
    networks["msd"].amp_grouped_conv = not args.no_amp_grouped_conv


def _dilations(text: str) -> tuple[int, ...]:
    return tuple(positive_int(word) for word in text.split(","))


def _tuple(value: Any) -> Any:
    return tuple(_tuple(item) for item in value) if isinstance(value, list | tuple) else value


def _text(item: Any) -> str:
    return ",".join(map(str, item)) if isinstance(item, tuple) else str(item)
