"""Command-line options of recognition, ``inference.py --jasper``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from common.cli import ArgumentParser, add_precision_arguments, non_negative_int, positive_float, positive_int
from common.errors import OptionError

OUTPUTS = (".json", ".tsv")


def wants_recognition(argv: Sequence[str] | None) -> bool:
    """Whether a command line gives a checkpoint that recognises speech."""
    return any(word.partition("=")[0] == "--jasper" for word in (sys.argv[1:] if argv is None else argv))


def parse_recognition_args(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options of ``inference.py --jasper``.

    Raises:
        OptionError: two options do not fit together.
    """
    parser = ArgumentParser(
        description="Write down what recordings say; with their transcripts, count the errors too",
        prog="inference.py --jasper",
        epilog="Exit status: 0 written down; 1 bad input; 2 wrong options.",
    )
    parser.add_argument("--jasper", type=Path, required=True, metavar="CHECKPOINT", help="of a Jasper model")
    parser.add_argument(
        "-i",
        "--input",
        type=Path,
        nargs="+",
        required=True,
        help="manifests (JSON), lists of wavs/a.wav|transcript, folders, or recordings",
    )
    parser.add_argument(
        "-d", "--dataset-path", type=Path, default=Path(), help="folder that manifests and lists are relative to"
    )
    parser.add_argument("-o", "--output", type=Path, help="file for transcripts and errors: name.json or name.tsv")
    parser.add_argument("--quiet", action="store_true", help="show the figures alone")
    parser.add_argument("--log-file", type=Path, help="JSON log of the figures")
    parser.add_argument("--ema", action="store_true", help="use the averaged weights")
    group = parser.add_argument_group("reading")
    group.add_argument("--max-duration", type=positive_float, help="leave out recordings of more seconds")
    group.add_argument("--max-utterances", type=non_negative_int, default=0, help="read so many; 0: all")
    group.add_argument(
        "--trim-silence",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="leave out what is 60 dB below the loudest part, at both ends",
    )
    group.add_argument(
        "--normalize-transcripts",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="write the references as the model does: lower case, numbers in words, no punctuation",
    )
    group.add_argument(
        "--pad-leading",
        type=non_negative_int,
        default=0,
        help="frames of silence before each recording; published inference had 16, which training never hears",
    )
    group = parser.add_argument_group("computing and measuring")
    add_precision_arguments(group)
    group.add_argument("-bs", "--batch-size", type=positive_int, default=16, help="recordings at once")
    group.add_argument(
        "--iterations", type=positive_int, help="measure so many batches, the same again if need be, and write nothing"
    )
    group.add_argument("--warmup-steps", type=non_negative_int, default=0, help="batches before measuring begins")
    group.add_argument(
        "--pad-to-max-duration", action="store_true", help="give all batches the length of --max-duration"
    )
    args = parser.parse_args(argv)
    if args.pad_to_max_duration and args.max_duration is None:
        raise OptionError("--pad-to-max-duration needs --max-duration")
    if args.iterations is None and args.warmup_steps:
        raise OptionError("--warmup-steps needs --iterations, which measures")
    if args.iterations is not None and args.output is not None:
        raise OptionError("--output needs transcripts, and --iterations only measures; leave one of them out")
    if args.output is not None and args.output.suffix not in OUTPUTS:
        raise OptionError(f"--output {args.output}: expected a file that ends with {' or '.join(OUTPUTS)}")
    return args
