"""Makes a corpus in LJSpeech's layout from recordings in any format."""

from collections.abc import Sequence
from pathlib import Path

from common.cli import ArgumentParser
from common.files import read_lines
from common.importing.options import ImportOptions
from common.options import add_options, read_options
from scripts.launch import print_next


def build_parser() -> ArgumentParser:
    """Return the parser: two folders and the options."""
    parser = ArgumentParser(
        prog="import_recordings.sh",
        description="Make a corpus from recordings in any sound format, with transcripts in many layouts",
        epilog="Exit status: 0 some clips were made; 1 none, or bad input; 2 wrong options; 128 + a signal's number.",
    )
    about = "folder of recordings and transcripts; nothing in it is changed"
    parser.add_argument("source", type=Path, help=about)
    parser.add_argument("target", type=Path, help="folder of the new corpus")
    add_options(parser, ImportOptions)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Import, and print the command that prepares the new corpus."""
    args = build_parser().parse_args(argv)
    from common.importing.run import import_recordings  # --help needs no PyTorch

    options = read_options(args, ImportOptions)
    status = import_recordings(args.source, args.target, options)
    if status == 0:
        n_val = min(100, max(1, len(read_lines(args.target / "metadata.csv")) // 20))
        named = {"DATASET_PATH": args.target, "NAME": args.target.resolve().name}
        print_next("", {**named, "N_VAL": n_val, "N_TEST": 0, "FEATURES": "false"}, "prepare_dataset")
    return status
