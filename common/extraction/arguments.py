"""Command-line options of extract_mels.py, and which of them fit together."""

import argparse
from pathlib import Path

from common.audio.arguments import add_audio_arguments
from common.audio.pitch import KINDS, METHODS
from common.cli import ArgumentParser, non_negative_float, option_of, positive_float, positive_int
from common.errors import InputError, OptionError
from common.text.cleaners import CLEANERS
from common.text.front_end import UNKNOWN_SYMBOLS
from common.text.symbols import CHARACTER_SETS, PHONE_SETS

PEAK_NORM = 32767 / 32768  # the largest 16-bit sample, as the original scales to
# What a Tacotron 2 makes, by option; and the options about it.
FOLLOWED = ("extract_durations", "extract_attentions", "extract_mels_teacher")
FOLLOWER_OPTIONS = ("symbol_set", "text_cleaners")


def extraction_parser() -> ArgumentParser:
    """The command line of ``extract_mels.py``."""
    parser = ArgumentParser(
        description="Extract mel-spectrograms, durations and pitch of the recordings in a list.",
        epilog="Exit status: 0 all utterances made, 1 some refused or bad input, 2 wrong options.",
    )
    _add_data_arguments(parser)
    _add_feature_arguments(parser)
    _add_follower_arguments(parser)
    work = parser.add_argument_group("work")
    work.add_argument("--cuda", action="store_true", help="make the mel-spectrograms on the GPU, and follow them there")
    work.add_argument("--num-workers", type=positive_int, help="processes (default: one for each core)")
    work.add_argument("--resume", action="store_true", help="keep the files of an earlier run that are whole")
    add_audio_arguments(parser)
    parser.add_argument("--peak-norm", action="store_true", help=f"the same as --peak {PEAK_NORM:.6f}")
    return parser


def _add_data_arguments(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    data.add_argument("-d", "--dataset-path", type=Path, default=Path(), help="folder that the lists' paths start from")
    data.add_argument(
        "--wav-text-filelist",
        type=Path,
        nargs="+",
        required=True,
        help="lists of wavs/a.wav|text[|speaker]; with several, the first is the training list, whose pitch "
        "statistics normalise them all",
    )
    data.add_argument(
        "--output-meta-file",
        type=Path,
        nargs="+",
        default=(),
        help="lists to write, one for each --wav-text-filelist: mels/a.pt|durations/a.pt|pitch_char/a.pt|text, ready "
        "for training; text is the phones where TextGrids give the durations",
    )
    data.add_argument(
        "--max-wav-value",
        type=positive_float,
        help="refuse recordings whose samples have another full scale than this: (2 ** bit depth) / 2, or 1 for "
        "float samples (default: accept each, scaled by its own depth)",
    )


def _add_feature_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what to extract")
    what.add_argument("--extract-mels", action="store_true", help="mel-spectrograms, into mels/")
    what.add_argument(
        "--extract-durations",
        action="store_true",
        help="durations of the transcript's symbols, from where a Tacotron 2 looks while it hears each frame, into "
        "durations/",
    )
    what.add_argument(
        "--extract-attentions", action="store_true", help="where it looks, tensors (frames, symbols), into attentions/"
    )
    what.add_argument(
        "--extract-mels-teacher",
        action="store_true",
        help="the mel-spectrograms that it makes meanwhile, a frame from the true ones before it, into mels_teacher/",
    )
    what.add_argument(
        "--extract-durs-from-textgrids",
        action="store_true",
        help="durations of the phones in TextGrid/a.TextGrid, into durations/",
    )
    what.add_argument(
        "--input-type",
        choices=("phone", "char"),
        default="phone",
        help="what the intervals of TextGrids are: phones, which become the text of --output-meta-file, or the "
        "characters of the transcript, which stays the text",
    )
    for kind, unit in zip(KINDS, ("mel frame", "symbol", "third of a symbol")):
        option = "--extract-" + kind.replace("_", "-")
        what.add_argument(option, action="store_true", help=f"pitch of each {unit}, into {kind}/ (in Hz: {kind}_hz/)")
    what.add_argument(
        "--extract-pitch",
        action="store_true",
        help="pitch of each mel frame in Hz, into pitch/, for lists of mels/a.pt|pitch/a.pt|text to train with "
        "--learned-alignment",
    )
    what.add_argument("--pitch-method", choices=METHODS, default=METHODS[0], help="what estimates pitch of any kind")
    what.add_argument(
        "--trim-silence",
        type=non_negative_float,
        metavar="SECONDS",
        help="shorten silence at both ends to this, and drop its symbol with 0; needs TextGrids",
    )
    what.add_argument(
        "--pitch-mean-std-file",
        type=Path,
        help="normalise pitch by these statistics, as a validation list by the training list's "
        "pitch_char_stats__<list>.json",
    )


def _add_follower_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "Tacotron 2", "what its checkpoint says of the mel-spectrograms and of the text need not be repeated"
    )
    group.add_argument(
        "--tacotron2-checkpoint",
        type=Path,
        help="checkpoint, ours or published, for --extract-durations, --extract-attentions, --extract-mels-teacher",
    )
    group.add_argument("--symbol-set", choices=(*CHARACTER_SETS, *PHONE_SETS), help="instead of the checkpoint's")
    group.add_argument("--text-cleaners", nargs="*", choices=tuple(CLEANERS), help="instead of the checkpoint's")
    group.add_argument(
        "--unknown-symbols",
        choices=UNKNOWN_SYMBOLS,
        default="error",
        help="transcripts with symbols that it does not know are refused, or lose them, with one warning that counts",
    )


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that do not fit together."""
    kinds = wanted_pitch(args)
    _check_follower(args)
    if args.pitch_method != METHODS[0] and not (kinds or args.extract_pitch):
        raise OptionError("--pitch-method is for pitch; add --extract-pitch or --extract-pitch-char")
    if not (args.extract_mels or args.extract_durs_from_textgrids or is_following(args) or kinds or args.extract_pitch):
        raise OptionError(
            "nothing to extract: give --extract-mels, --extract-durations, --extract-durs-from-textgrids or "
            "--extract-pitch-char"
        )
    if args.trim_silence is not None and not args.extract_durs_from_textgrids:
        raise OptionError("--trim-silence needs --extract-durs-from-textgrids, which say where the silence is")
    if args.input_type != "phone" and not args.extract_durs_from_textgrids:
        raise OptionError("--input-type says what TextGrids hold; it needs --extract-durs-from-textgrids")
    if args.output_meta_file and len(args.output_meta_file) != len(args.wav_text_filelist):
        raise OptionError(
            f"--output-meta-file: {len(args.output_meta_file)} files for {len(args.wav_text_filelist)} lists, "
            "expected one for each"
        )
    if args.pitch_mean_std_file is not None and len(kinds) != 1:
        raise OptionError("--pitch-mean-std-file: needs exactly one --extract-pitch-..., whose statistics they are")
    if args.peak_norm and hasattr(args, "peak"):
        raise OptionError("--peak-norm and --peak: give one of them")
    if args.cuda and not (args.extract_mels or is_following(args)):
        raise OptionError(
            "--cuda: only mel-spectrograms and what a Tacotron 2 makes are made on the GPU; add --extract-mels or "
            "leave it out"
        )
    check_dataset(args)


def check_dataset(args: argparse.Namespace) -> None:
    """Refuse a dataset that is not there."""
    if not args.dataset_path.is_dir():
        raise InputError(f"{args.dataset_path}: no such folder; --dataset-path holds the wavs")


def _check_follower(args: argparse.Namespace) -> None:
    if not is_following(args):
        for name in ("tacotron2_checkpoint", *FOLLOWER_OPTIONS):
            if getattr(args, name) is not None:
                raise OptionError(f"{option_of(name)} is only used by {', '.join(map(option_of, FOLLOWED))}")
        if args.unknown_symbols != "error":
            raise OptionError(f"--unknown-symbols is only used by {', '.join(map(option_of, FOLLOWED))}")
        return
    wanted = next(option_of(name) for name in FOLLOWED if getattr(args, name))
    if args.tacotron2_checkpoint is None:
        instead = "; or use --extract-durs-from-textgrids" if args.extract_durations else ""
        raise OptionError(f"{wanted} needs --tacotron2-checkpoint{instead}")
    if args.extract_durations and args.extract_durs_from_textgrids:
        raise OptionError("--extract-durations and --extract-durs-from-textgrids: give one of them")
    if args.trim_silence is not None:
        raise OptionError(f"--trim-silence and {wanted}: Tacotron 2 follows whole recordings; leave one of them out")


def is_following(args: argparse.Namespace) -> bool:
    """Whether a Tacotron 2 has to follow the recordings."""
    return any(getattr(args, name) for name in FOLLOWED)


def wanted_pitch(args: argparse.Namespace) -> tuple[str, ...]:
    """Kinds of pitch that the options ask for."""
    return tuple(kind for kind in KINDS if getattr(args, f"extract_{kind}"))
