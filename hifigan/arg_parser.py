"""HiFi-GAN's training options on the command line, and its published recipe."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import combinations_with_replacement
from math import prod
from pathlib import Path
from typing import Any

from common.checkpoints.arguments import add_voice_argument, stored_mels, training_audio_from_args
from common.cli import ArgumentParser, fraction, positive_float, positive_int, values_of
from common.config import AudioConfig
from common.errors import InputError, OptionError
from common.nn import DiscriminatorConfig
from common.options import add_options, given_options
from common.training import Optimization, Recipe, TrainingSetup, exponential_schedule
from common.training.arguments import add_discriminator_options
from hifigan.config import PRESETS, PUBLISHED_MELS, ModelConfig
from hifigan.json_config import ADAM_BETAS, read_json_config

SEGMENT_SIZE = 8192  # samples of a training segment, where that is a multiple of the hop length
_LARGEST_RATE = 8  # of one upsampling, where the rates are chosen to fit a hop length
# As NVIDIA's scripts/train_lj22khz.sh, with a global batch of 128 segments (8 GPUs).
RECIPE = Recipe(
    epochs=6500,
    batch_size=16,
    optimizer="adamw",
    learning_rate=3e-4,
    weight_decay=0.01,
    grad_clip_thresh=float("inf"),
    epochs_per_checkpoint=10,
    validation_interval=10,
    samples_interval=100,
    keep_milestones=tuple(range(1000, 10001, 1000)),
)


@dataclass(frozen=True)
class TrainingOptions:
    """HiFi-GAN's own options of training."""

    dataset_path: Path
    segment_size: int  # samples, a multiple of the hop length
    seed: int
    input_mels_dir: Path | None  # None: mels are computed from the recordings
    preset: str
    architecture: Mapping[str, Any]  # the fields of ModelConfig that were given
    amp_grouped_conv: bool
    concat_fwd: bool
    mel_fmax_loss: float | None  # Hz; None: half the sampling rate
    mel_loss_only: bool  # the discriminators are not trained


def add_training_arguments(parser: ArgumentParser) -> None:
    """Add the options of training and architecture."""
    add = parser.add_argument_group("HiFi-GAN").add_argument
    add("--lr-decay", type=positive_float, default=0.9998, help="factor of the learning rate, each epoch")
    betas = "decay of Adam's averages"
    add("--adam-betas", type=fraction, nargs=2, default=ADAM_BETAS, metavar=("B1", "B2"), help=betas)
    segment = f"samples of a training segment; {SEGMENT_SIZE}, or the multiple of the hop length below, if not given"
    add("--segment-size", type=positive_int, help=segment)
    band = "Hz, upper end of the mel loss's band; half the sampling rate if not given"
    add("--mel-fmax-loss", type=positive_float, help=band)
    alone = "train the generator by the mel loss alone, several times faster; --resume without it goes on as published"
    add("--mel-loss-only", action="store_true", help=alone)
    tuning = "resume from a trained vocoder with the mels of --input-mels-dir, and recordings as they are"
    add("--fine-tuning", action="store_true", help=tuning)
    add("--input-mels-dir", type=Path, help="folder with the mel of each recording; they are computed if not given")
    add_voice_argument(add)
    kinds = (
        "corpus: mels as the corpus's, which its voices make (or those of --for-voice or --input-mels-dir); published: "
        "as the published vocoders', which speak for a voice after fine-tuning on its mels"
    )
    add("--mel", choices=("corpus", "published"), default="corpus", help=kinds)
    factor = "factor of the learning rate in fine-tuning"
    add("--fine-tune-lr-factor", type=positive_float, default=1.0, help=factor)
    grouped = "compute grouped convolutions in float32 with --amp, which is faster on some GPUs"
    add("--no-amp-grouped-conv", action="store_true", help=grouped)
    concat = "discriminators score recordings and generated sound in one pass; on with --cuda if not given"
    add("--concat-fwd", action=argparse.BooleanOptionalAction, help=concat)
    _add_architecture(parser)


def _add_architecture(parser: ArgumentParser) -> None:
    group = parser.add_argument_group(
        "architecture of HiFi-GAN", "an option that is left out takes the preset's value; for v1 that in brackets"
    )
    group.add_argument("--preset", choices=tuple(PRESETS), default="v1", help="the authors' architectures")
    file = "JSON in the form of the authors' config.json; its values take the place of defaults"
    group.add_argument("--hifigan-config", type=Path, help=file)
    parser.set_defaults_reader("--hifigan-config", read_json_config)

    add_options(group, ModelConfig, without=[field.name for field in fields(DiscriminatorConfig)], absent=True)
    add_discriminator_options(parser)


def parse_training(args: argparse.Namespace) -> TrainingSetup:
    """The training run that the options describe.

    Raises:
        OptionError: options that do not go together, or are of different mels.
        InputError: the voice or the folder of mels cannot be read.
    """
    if args.fine_tuning and args.input_mels_dir is None:
        raise OptionError("--fine-tuning needs --input-mels-dir, the mels that scripts/extract_fine_tune_mels.sh makes")
    if args.fine_tuning and args.checkpoint_path is None and args.from_checkpoint is None and not args.resume:
        raise OptionError(
            "--fine-tuning resumes from a trained vocoder; give it by --checkpoint-path, --from-checkpoint or --resume"
        )
    if not args.fine_tuning and args.fine_tune_lr_factor != 1:
        raise OptionError("--fine-tune-lr-factor is for --fine-tuning; add that, or leave it out")
    if args.no_amp_grouped_conv and not args.amp:
        raise OptionError("--no-amp-grouped-conv excepts layers from --amp; add --amp")
    audio = _audio_config(args)
    hop = audio.hop_length
    segment_size = args.segment_size or SEGMENT_SIZE // hop * hop
    if segment_size % hop:
        raise OptionError(f"--segment-size {segment_size}: expected a multiple of the hop length, {hop} samples")
    if args.mel_fmax_loss is not None and args.mel_fmax_loss > audio.sampling_rate / 2:
        raise OptionError(
            f"--mel-fmax-loss {args.mel_fmax_loss:g}: expected at most half the sampling rate, "
            f"{audio.sampling_rate / 2:g} Hz"
        )
    given = {
        "segment_size": segment_size,
        # On a GPU one large pass beats two small ones; a CPU only loses the locality of the small ones.
        "concat_fwd": args.cuda if args.concat_fwd is None else args.concat_fwd,
        "amp_grouped_conv": not args.no_amp_grouped_conv,
        "architecture": given_options(args, ModelConfig),
    }
    options = TrainingOptions(**values_of(args, TrainingOptions) | given)
    rate = args.learning_rate * (args.fine_tune_lr_factor if args.fine_tuning else 1)
    schedule = exponential_schedule(rate, decay=args.lr_decay)
    return TrainingSetup(
        options,
        audio,
        text=None,
        optimization=Optimization(schedule, betas=tuple(args.adam_betas), eps=1e-8),
        same_shapes=True,
        recordable=True,
        adaptable=("framing", "peak") if args.fine_tuning else (),
    )


def _audio_config(args: argparse.Namespace) -> AudioConfig:
    folder, source = args.input_mels_dir, None
    if folder is not None:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder of mels")
        source = stored_mels(folder, option="--input-mels-dir")
    if args.mel == "published":  # as options, over which those that were given have precedence
        args = argparse.Namespace(**PUBLISHED_MELS | vars(args))
    # Mels without a description, as the published generators' tools made them, are not those of the vocoder before.
    return training_audio_from_args(args, source, may_resume=folder is None)


def model_config(
    options: TrainingOptions, audio: AudioConfig, text: None = None, *, base: ModelConfig | None = None
) -> ModelConfig:
    """The architecture that the options describe, for mels as ``audio``'s.

    ``base``, of the checkpoint to resume from, takes the place of the preset, so that options need not repeat it.

    Raises:
        OptionError: an option has no sensible value, two do not fit together, or no rates make up the hop length.
    """
    given = {**options.architecture, "n_mel_channels": audio.n_mels}
    if base is not None:
        return replace(base, **given)
    preset = PRESETS[options.preset]
    if "upsample_rates" not in given and "upsample_kernel_sizes" not in given:
        given["upsample_rates"] = fitting_rates(audio.hop_length, preset.upsample_rates)
    if "upsample_rates" in given and "upsample_kernel_sizes" not in given:
        given["upsample_kernel_sizes"] = tuple(2 * rate + rate % 2 for rate in given["upsample_rates"])
    return replace(preset, **given)


def fitting_rates(hop_length: int, preset: tuple[int, ...]) -> tuple[int, ...]:
    """The preset's rates if their product is the hop length, else as many, falling, the first as large as possible.

    Raises:
        OptionError: there are none.
    """
    if prod(preset) == hop_length:
        return preset
    candidates = combinations_with_replacement(range(_LARGEST_RATE, 1, -1), len(preset))  # the largest come first
    rates = next((rates for rates in candidates if prod(rates) == hop_length), None)
    if rates is None:
        raise OptionError(
            f"--hop-length {hop_length}: not a product of {len(preset)} upsampling rates from 2 to {_LARGEST_RATE}; "
            "give --upsample-rates, or choose another hop length"
        )
    return rates
