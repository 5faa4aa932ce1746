"""FastPitch's options on the command line."""

import argparse
from pathlib import Path

from torch import nn

from common.audio.arguments import audio_config_from_args, features_config
from common.audio.pitch import METHODS
from common.audio.pitch_statistics import read_pitch_statistics
from common.cli import ArgumentParser, non_negative_float, non_negative_int, positive_int
from common.config import AudioConfig, TextConfig
from common.data.filelist import first_fields
from common.distributed import is_first_process
from common.errors import InputError, OptionError
from common.progress import print_line
from common.text.arguments import add_text_arguments, text_config_from_args
from common.text.front_end import TextFrontEnd
from common.training.optim import Optimization, inverse_sqrt_schedule
from common.training.settings import Settings
from fastpitch.fine_tuning import check_audio, describe_voice, known_speakers, options_of_voice, start_from
from fastpitch.frames import read_list
from fastpitch.model import ModelConfig
from fastpitch.speakers import speaker_names

_DEFAULTS = ModelConfig()
_ALIGNMENT_DEFAULTS = {
    "pitch_method": "praat",
    "pitch_cache": None,
    "attn_loss_scale": 1.0,
    "kl_loss_weight": 1.0,
    "kl_loss_start_epoch": 250,
    "kl_loss_warmup_epochs": 100,
}


def add_arguments(parser: ArgumentParser) -> None:
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
    for name, target in (("dur", "duration"), ("pitch", "pitch"), ("energy", "energy")):
        _add(group, f"{name}_predictor_kernel_size", f"kernel size of the {target} predictor")
        _add(group, f"{name}_predictor_filter_size", f"filters of the {target} predictor")
        _add(group, f"p_{name}_predictor_dropout", f"dropout of the {target} predictor")
        _add(group, f"{name}_predictor_n_layers", f"convolutions of the {target} predictor")
    _add(group, "pitch_embedding_kernel_size", "kernel size of the pitch embedding")
    _add(group, "energy_embedding_kernel_size", "kernel size of the energy embedding")
    group.add_argument(
        "--n-speakers",
        type=positive_int,
        help="number of speakers, with a column of their numbers or names in the lists; 1: one voice, whatever the "
        "lists say (default: as many as the training list's column has)",
    )
    _add(group, "speaker_emb_weight", "scale of the speaker embedding")
    group.add_argument(
        "--pitch-mean-std-file",
        type=Path,
        help="JSON with the pitch statistics to store in the model (Hz); with --learned-alignment they are measured "
        "if not given",
    )
    group.add_argument(
        "--from-checkpoint",
        type=Path,
        help="voice to start from, ours or published: its architecture and text options are the defaults, symbols and "
        "speakers keep their vectors by name, the training begins anew",
    )
    parser.set_defaults_reader("--from-checkpoint", options_of_voice)
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
    _add_alignment_arguments(parser)


def _add_alignment_arguments(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("FastPitch 1.1", "lists of wavs/a.wav|text or mels/a.pt|pitch/a.pt|text")
    group.add_argument(
        "--learned-alignment",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="find the durations while training, from recordings (or their features) and transcripts alone",
    )
    group.add_argument(
        "--energy-conditioning",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="predict the energy of each symbol, and speak with it",
    )
    group.add_argument("--pitch-method", choices=METHODS, default="praat", help="estimates the pitch of recordings")
    group.add_argument(
        "--pitch-cache",
        type=Path,
        help="folder that keeps the pitch of recordings (default: pitch_cache in the dataset's folder)",
    )
    for name, default, description in (
        ("--energy-predictor-loss-scale", 0.1, "weight of the energy loss"),
        ("--attn-loss-scale", 1.0, "weight of the alignment's loss"),
        ("--kl-loss-weight", 1.0, "weight of the loss between soft and hard alignment, at last"),
    ):
        group.add_argument(name, type=non_negative_float, default=default, help=description)
    group.add_argument(
        "--kl-loss-start-epoch", type=non_negative_int, default=250, help="epoch after which that loss begins"
    )
    group.add_argument(
        "--kl-loss-warmup-epochs", type=non_negative_int, default=100, help="epochs in which its weight rises"
    )


def settings_from_args(args: argparse.Namespace) -> Settings:
    """The mels that the dataset's folder or the voice to start from describes, and the published schedule.

    The learning rate is divided by sqrt(update) once the warm-up has reached sqrt(warmup steps); it is constant
    without warm-up.

    Raises:
        OptionError: options that do not go together.
    """
    _check_options(args)
    audio = audio_config_from_args(args, base=_base_audio(args))
    if args.from_checkpoint is not None:
        check_audio(describe_voice(args.from_checkpoint)[0], audio, where=args.from_checkpoint)
    return Settings(
        audio=audio,
        text=_text_config(args),
        optimization=Optimization(inverse_sqrt_schedule(args.learning_rate, warmup_steps=args.warmup_steps)),
    )


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that would do nothing."""
    if args.from_checkpoint is not None and args.checkpoint_path is not None:
        raise OptionError("--from-checkpoint begins a new training, --checkpoint-path goes on with one; give one")
    if not args.learned_alignment:
        for name, default in _ALIGNMENT_DEFAULTS.items():
            if getattr(args, name) != default:
                raise OptionError(f"--{name.replace('_', '-')} is for training with --learned-alignment; add that")
    elif _lists_features(args):
        for name in ("pitch_method", "pitch_cache"):
            if getattr(args, name) != _ALIGNMENT_DEFAULTS[name]:
                raise OptionError(f"--{name.replace('_', '-')} is for lists of recordings; theirs have pitch already")


def _lists_features(args: argparse.Namespace) -> bool:
    return first_fields(args.training_files)[0].endswith(".pt")


def _base_audio(args: argparse.Namespace) -> AudioConfig | None:
    """What the stored mels are; else, of recordings, what the voice to start from makes, if there is one."""
    if not args.learned_alignment or _lists_features(args):
        return features_config(args.dataset_path / "mels")
    return None if args.from_checkpoint is None else describe_voice(args.from_checkpoint)[0].audio


def _text_config(args: argparse.Namespace) -> TextConfig:
    """The text options with the speakers of the training list, after those of the voice to start from."""
    known = () if args.from_checkpoint is None else known_speakers(*describe_voice(args.from_checkpoint))
    if "training_files" not in args or (args.n_speakers == 1 and not known):
        return text_config_from_args(args, speakers=known)
    entries = read_list(args.training_files, learned_alignment=args.learned_alignment)
    return text_config_from_args(args, speakers=speaker_names(entries, args.n_speakers, known=known))


def config_from_args(args: argparse.Namespace, audio: AudioConfig, *, base: ModelConfig | None = None) -> ModelConfig:
    """The architecture that parsed options describe, for mels as ``audio``'s and the text options' symbols.

    Every option has a value, so that ``base``, of the checkpoint to go on from, only says whether its speakers share
    their pitch statistics, as those of published voices do.

    Raises:
        OptionError: an option has no sensible value, or two do not fit together.
    """
    options = {name: getattr(args, name) for name in vars(_DEFAULTS) if name in vars(args)}
    text = _text_config(args)
    front_end = TextFrontEnd(text)
    n_speakers = args.n_speakers or max(1, len(text.speakers))
    apart = args.learned_alignment and n_speakers > 1 if base is None else base.pitch_statistics_per_speaker
    return ModelConfig(
        **options
        | {"symbol_type": text.input_type, "n_symbols": front_end.n_symbols, "padding_idx": front_end.padding_id}
        | {"n_mel_channels": audio.n_mels, "n_speakers": n_speakers}
        | {"pitch_statistics_per_speaker": apart}
    )


def set_up_networks(networks: dict[str, nn.Module], args: argparse.Namespace, *, new: bool) -> None:
    """Give a ``new`` model the weights of the voice to start from, and the pitch statistics that are given.

    With statistics in the model its pitch can be given in Hz at inference. A voice that finds its own alignment has
    them measured where none are given (`fastpitch.data_function.survey`).

    Raises:
        InputError: no file of statistics is given or found, or it holds none.
    """
    if not new:
        return
    network = networks["fastpitch"]
    if args.from_checkpoint is not None:
        text = _text_config(args)
        entries = read_list(args.training_files, learned_alignment=args.learned_alignment)
        speaking = {entry.fields.get("speaker", "") for entry in entries}
        for line in start_from(network, args.from_checkpoint, text=text, speaking=speaking):
            if is_first_process():
                print_line(line)
    if args.learned_alignment and args.pitch_mean_std_file is None:
        return
    found = read_pitch_statistics(args.pitch_mean_std_file or _find_pitch_statistics(args))
    network.pitch_mean.fill_(found.mean)
    network.pitch_std.fill_(found.std)


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
