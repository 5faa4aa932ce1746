"""Command-line options of the text front end, and the TextConfig they describe."""

import argparse
from collections.abc import Sequence

from common.config import TextConfig
from common.errors import OptionError
from common.text.cleaners import CLEANERS
from common.text.front_end import UNKNOWN_SYMBOLS
from common.text.symbols import CHARACTER_SETS, PHONE_SETS


def add_text_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a transcript becomes symbol ids."""
    group = parser.add_argument_group("text")
    group.add_argument(
        "--input-type",
        choices=("char", "phone"),
        default="char",
        help="transcripts are characters (with ARPAbet in curly braces), or blank-separated phones",
    )
    group.add_argument(
        "--symbol-set",
        choices=(*CHARACTER_SETS, *PHONE_SETS),
        default="english_basic",
        help=f"ordered table of symbols; for phones one of {', '.join(PHONE_SETS)}",
    )
    group.add_argument(
        "--text-cleaners",
        nargs="*",
        choices=tuple(CLEANERS),
        default=["english_cleaners_v3"],
        help="cleaners of character transcripts, applied in this order; published voices: english_cleaners",
    )
    group.add_argument(
        "--unknown-symbols",
        choices=UNKNOWN_SYMBOLS,
        default="error",
        help="symbols that are not in the set end the run, or are dropped with one warning that counts them",
    )


def text_config_from_args(args: argparse.Namespace, *, speakers: Sequence[str] = ()) -> TextConfig:
    """The ``TextConfig`` of parsed options; ``speakers`` are names in order of their ids.

    Raises ``OptionError`` when the symbol set does not hold what the input type asks for.
    """
    wanted = PHONE_SETS if args.input_type == "phone" else CHARACTER_SETS
    if args.symbol_set not in wanted:
        raise OptionError(
            f"--symbol-set {args.symbol_set} does not fit --input-type {args.input_type}: "
            f"use one of {', '.join(wanted)}"
        )
    return TextConfig(
        input_type=args.input_type,
        symbol_set=args.symbol_set,
        # Phone transcripts are not cleaned, so two runs that differ in this option alone are the same.
        cleaners=() if args.input_type == "phone" else tuple(args.text_cleaners),
        speakers=tuple(speakers),
    )
