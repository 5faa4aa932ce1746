"""FastPitch's options on the command line."""

import argparse
from pathlib import Path

from torch import nn

from common.audio_arguments import audio_config_from_args, features_config
from common.cli import non_negative_float, non_negative_int, positive_int
from common.config import AudioConfig
from common.errors import InputError
from common.optim import Optimization, inverse_sqrt_schedule
from common.pitch_statistics import read_pitch_statistics
from common.settings import Settings
from common.text.arguments import add_text_arguments, text_config_from_args
from common.text.front_end import TextFrontEnd
from fastpitch.model import ModelConfig

_DEFAULTS = ModelConfig()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add text, architecture, loss scales and pitch statistics; defaults are the published model's."""
    add_text_arguments(parser)
    group = parser.add_argument_group("FastPitch")
    group.add_argument("--warmup-steps", type=non_negative_int, default=1000, help="updates of rising rate; 0: none")
    _add(group, "symbols_embedding_dim", "channels of encoder and decoder")
    for side, network in (("in", "encoder"), ("out", "decoder")):
        _add(group, f"{side}_fft_n_layers", f"Transformer blocks of the {network}")
        _add(group, f"{side}_fft_n_heads", f"attention heads of the {network}")
        _add(group, f"{side}_fft_d_head", f"channels of an attention head of the {network}")
        _add(group, f"{side}_fft_conv1d_kernel_size", f"kernel size of the {network}'s convolutions")
        _add(group, f"{side}_fft_conv1d_filter_size", f"filters between the {network}'s convolutions")
        _add(group, f"{side}_fft_output_size", f"output channels of the {network}; as --symbols-embedding-dim")
        _add(group, f"p_{side}_fft_dropout", f"dropout in the {network}")
        _add(group, f"p_{side}_fft_dropatt", f"dropout of the {network}'s attention")
        _add(group, f"p_{side}_fft_dropemb", f"dropout of the {network}'s input")
    for name, target in (("dur", "duration"), ("pitch", "pitch")):
        _add(group, f"{name}_predictor_kernel_size", f"kernel size of the {target} predictor")
        _add(group, f"{name}_predictor_filter_size", f"filters of the {target} predictor")
        _add(group, f"p_{name}_predictor_dropout", f"dropout of the {target} predictor")
        _add(group, f"{name}_predictor_n_layers", f"convolutions of the {target} predictor")
    _add(group, "pitch_embedding_kernel_size", "kernel size of the pitch embedding")
    _add(group, "n_speakers", "number of speakers; above 1 the list has a column with their numbers")
    _add(group, "speaker_emb_weight", "scale of the speaker embedding")
    group.add_argument(
        "--pitch-mean-std-file", type=Path, help="JSON with the pitch statistics to store in the model (Hz)"
    )
    group.add_argument(
        "--dur-predictor-loss-scale",
        "--duration-predictor-loss-scale",
        type=non_negative_float,
        default=0.1,
        help="weight of the duration loss",
    )
    group.add_argument(
        "--pitch-predictor-loss-scale", type=non_negative_float, default=0.1, help="weight of the pitch loss"
    )


def settings_from_args(args: argparse.Namespace) -> Settings:
    """The mels of the dataset's folder, as extract_mels.py left their description there, and the published schedule.

    The learning rate is divided by sqrt(update) once the warm-up has reached sqrt(warmup steps); it is constant
    without warm-up.
    """
    return Settings(
        audio=audio_config_from_args(args, base=features_config(args.dataset_path / "mels")),
        text=text_config_from_args(args),
        optimization=Optimization(inverse_sqrt_schedule(args.learning_rate, warmup_steps=args.warmup_steps)),
    )


def config_from_args(args: argparse.Namespace, audio: AudioConfig, *, base: ModelConfig | None = None) -> ModelConfig:
    """The architecture that parsed options describe, for mels as ``audio``'s and the text options' symbols.

    Every option has a value, so that ``base``, of the checkpoint to go on from, has nothing to add.

    Raises:
        OptionError: an option has no sensible value, or two do not fit together.
    """
    options = {name: getattr(args, name) for name in vars(_DEFAULTS) if name in vars(args)}
    front_end = TextFrontEnd(text_config_from_args(args))
    text = {"symbol_type": args.input_type, "n_symbols": front_end.n_symbols, "padding_idx": front_end.padding_id}
    return ModelConfig(**options | text | {"n_mel_channels": audio.n_mels})


def set_up_networks(networks: dict[str, nn.Module], args: argparse.Namespace, *, new: bool) -> None:
    """Store the voice's pitch statistics in a ``new`` model, so that its pitch can be given in Hz at inference.

    Raises:
        InputError: no file of statistics is given or found, or it holds none.
    """
    if not new:
        return
    found = read_pitch_statistics(args.pitch_mean_std_file or _find_pitch_statistics(args))
    networks["fastpitch"].pitch_mean.fill_(found.mean)
    networks["fastpitch"].pitch_std.fill_(found.std)


def _find_pitch_statistics(args: argparse.Namespace) -> Path:
    """The statistics of the training list, or the only ones of the dataset: lists of features may be named anew."""
    own = args.dataset_path / f"pitch_char_stats__{args.training_files.stem}.json"
    found = [own] if own.is_file() else sorted(args.dataset_path.glob("pitch_char_stats__*.json"))
    if len(found) == 1:
        return found[0]
    there = f"; there are {', '.join(path.name for path in found)}" if found else ""
    raise InputError(
        f"{own}: no such file, and the model needs its voice's pitch statistics{there}; "
        "name theirs with --pitch-mean-std-file, or make them by extract_mels.py --extract-pitch-char"
    )


def _add(group: argparse._ArgumentGroup, field: str, description: str) -> None:
    default = getattr(_DEFAULTS, field)
    kind = positive_int if isinstance(default, int) else float
    group.add_argument("--" + field.replace("_", "-"), type=kind, default=default, help=description)
