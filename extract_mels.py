"""Extract what models train on from recordings: mel-spectrograms, durations and pitch, and lists of them."""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

from common import distributed
from common.audio_arguments import add_audio_arguments, audio_config_from_args
from common.cli import ArgumentParser, non_negative_float, positive_float, positive_int, run
from common.errors import InputError, OptionError
from common.extraction import FROM_FILES, FROM_TEXTGRIDS, ExtractionPlan
from common.extraction_report import table
from common.extraction_run import FailedElsewhereError, extract_corpus
from common.mel import MelExtractor
from common.pitch import KINDS
from common.pitch_statistics import read_pitch_statistics

INTERRUPTED = 130  # exit status, as a shell gives it to a command ended by Ctrl-C
PEAK_NORM = 32767 / 32768  # the largest 16-bit sample, as the original scales to


def build_parser() -> argparse.ArgumentParser:
    """The command line of ``extract_mels.py``."""
    parser = ArgumentParser(
        description="Extract mel-spectrograms, durations and pitch of the recordings in a list.",
        epilog="Exit status: 0 all utterances made, 1 some refused or bad input, 2 wrong options.",
    )
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
    what = parser.add_argument_group("what to extract")
    what.add_argument("--extract-mels", action="store_true", help="mel-spectrograms, into mels/")
    what.add_argument("--extract-durations", action="store_true", help="durations by a Tacotron 2, into durations/")
    what.add_argument("--tacotron2-checkpoint", type=Path, help="Tacotron 2 for --extract-durations")
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
    work = parser.add_argument_group("work")
    work.add_argument("--cuda", action="store_true", help="make the mel-spectrograms on the GPU")
    work.add_argument("--num-workers", type=positive_int, help="processes (default: one for each core)")
    work.add_argument("--resume", action="store_true", help="keep the files of an earlier run that are whole")
    add_audio_arguments(parser)
    parser.add_argument("--peak-norm", action="store_true", help=f"the same as --peak {PEAK_NORM:.6f}")
    return parser


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that do not fit together."""
    kinds = wanted_pitch(args)
    if args.extract_durations:
        raise OptionError(
            "--extract-durations: the tacotron2 package is not part of this version; "
            "use --extract-durs-from-textgrids, or put durations/*.pt beside the wavs"
        )
    if args.tacotron2_checkpoint is not None:
        raise OptionError("--tacotron2-checkpoint is only used by --extract-durations")
    if not (args.extract_mels or args.extract_durs_from_textgrids or kinds):
        raise OptionError(
            "nothing to extract: give --extract-mels, --extract-durs-from-textgrids or --extract-pitch-char"
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
    if args.cuda and not args.extract_mels:
        raise OptionError("--cuda: only mel-spectrograms are made on the GPU; add --extract-mels or leave it out")
    if not args.dataset_path.is_dir():
        raise InputError(f"{args.dataset_path}: no such folder; --dataset-path holds the wavs")


def wanted_pitch(args: argparse.Namespace) -> tuple[str, ...]:
    """Kinds of pitch that the options ask for."""
    return tuple(kind for kind in KINDS if getattr(args, f"extract_{kind}"))


def plan_from_args(args: argparse.Namespace) -> ExtractionPlan:
    """What the options ask for."""
    try:
        audio = audio_config_from_args(args)
        if args.peak_norm:
            audio = replace(audio, peak=PEAK_NORM)
        MelExtractor(audio)  # it knows what cannot be computed
    except InputError as error:
        raise OptionError(str(error)) from error
    kinds = wanted_pitch(args)
    durations_from = None
    if args.extract_durs_from_textgrids:
        durations_from = FROM_TEXTGRIDS
    elif any(kind != "pitch_mel" for kind in kinds):
        durations_from = FROM_FILES
    return ExtractionPlan(
        dataset_path=args.dataset_path,
        audio=audio,
        mels=args.extract_mels,
        pitch=kinds,
        durations_from=durations_from,
        symbols_are_characters=args.input_type == "char",
        trim_silence=args.trim_silence,
        max_wav_value=args.max_wav_value,
        resume=args.resume,
    )


def default_workers() -> int:
    """This process's share of the cores it may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // int(os.environ.get("LOCAL_WORLD_SIZE", 1)))


def main() -> int:
    args = build_parser().parse_args()
    check_options(args)
    plan = plan_from_args(args)
    given = None if args.pitch_mean_std_file is None else read_pitch_statistics(args.pitch_mean_std_file)
    ranks = distributed.start(cuda=args.cuda)
    try:
        report = extract_corpus(
            plan,
            lists=args.wav_text_filelist,
            meta_files=args.output_meta_file,
            given=given,
            ranks=ranks,
            n_workers=args.num_workers or default_workers(),
        )
    except FailedElsewhereError:
        return 1
    except KeyboardInterrupt:
        print("interrupted; what is whole stays, --resume goes on from there", file=sys.stderr)
        return INTERRUPTED
    finally:
        distributed.stop()
    if ranks.is_main:
        print(table(report, plan))
    return 1 if report.refused else 0


if __name__ == "__main__":
    run(main)
