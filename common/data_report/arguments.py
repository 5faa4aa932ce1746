"""Command-line options of the data report, and the limits that they set."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from common.cli import given_options, non_negative_float, option_of, positive_float, real_number
from common.config import TextConfig
from common.errors import OptionError
from common.text import PHONE_SETS

# What a data report reads, besides its own options and those of the mel-spectrograms.
REPORT_READS = ("dataset_path", "wav_text_filelist", "max_wav_value", "symbol_set", "text_cleaners", "num_workers")
DEFAULT_CLEANERS = ("english_cleaners_v3",)  # of train.py


def _limit(default: float, words: str, kind: Callable[[str], float] = positive_float) -> Any:
    """A field of Limits; ``words`` and ``kind`` are its option's help and type."""
    return field(default=default, metadata={"help": words, "type": kind})


@dataclass(frozen=True)
class Limits:
    """Where a clip becomes suspicious."""

    outlier: float = _limit(
        5.0,
        "robust standard deviations (by the median absolute deviation) from the speaker's median at which speaking "
        "rate, level and pitch are suspicious",
    )
    min_seconds: float = _limit(0.25, "shorter clips are suspicious", non_negative_float)
    max_seconds: float = _limit(20.0, "longer clips are suspicious")
    max_silence: float = _limit(0.75, "seconds of silence at either end")
    max_pause: float = _limit(2.0, "seconds of silence between words")
    max_clipping: float = _limit(0.0001, "share of samples in flat tops", non_negative_float)
    max_dc: float = _limit(0.01, "mean of the samples, as a part of full scale")
    min_level: float = _limit(-45.0, "dBFS: a clip whose speech is quieter is near-silent", real_number(-1000, 1000))


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the data report."""
    group = parser.add_argument_group(
        "data report", "analyzes recordings and transcripts instead of extracting features"
    )
    group.add_argument(
        "--report",
        action="store_true",
        help="say which clips extraction or training would refuse and which are suspicious; --symbol-set and "
        "--text-cleaners are those that the voice will be trained with",
    )
    group.add_argument(
        "-o",
        "--report-output",
        type=Path,
        help="folder for report.html and report.json (default: data_report in the dataset's folder)",
    )
    group.add_argument("--report-strict", action="store_true", help="exit status 1 if anything at all is suspicious")
    for limit in fields(Limits):
        group.add_argument(option_of(f"report_{limit.name}"), default=limit.default, **limit.metadata)


def check_report_options(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """A report reads few of the other options, and its own have no use without it."""
    given = [name for name in given_options(args, parser) if name != "report"]
    if not args.report:
        if alone := next((name for name in given if name.startswith("report_")), None):
            raise OptionError(f"{option_of(alone)} is only used by --report")
        return
    read = [name for name in given if name not in REPORT_READS and not name.startswith("report_")]
    if read:
        raise OptionError(f"--report analyzes recordings and makes no features; leave out {option_of(read[0])}")
    if args.report_min_seconds >= args.report_max_seconds:
        raise OptionError(
            f"--report-min-seconds {args.report_min_seconds:g} and --report-max-seconds {args.report_max_seconds:g}: "
            "the first must be smaller"
        )


def limits_from_args(args: argparse.Namespace) -> Limits:
    """The limits that the options set."""
    return Limits(**{limit.name: getattr(args, f"report_{limit.name}") for limit in fields(Limits)})


def text_from_args(args: argparse.Namespace) -> TextConfig:
    """How the transcripts will be read: as train.py does by default; a set of phones makes them phones."""
    symbol_set = args.symbol_set or TextConfig().symbol_set
    if symbol_set in PHONE_SETS:
        return TextConfig(input_type="phone", symbol_set=symbol_set, cleaners=())
    cleaners = DEFAULT_CLEANERS if args.text_cleaners is None else tuple(args.text_cleaners)
    return TextConfig(symbol_set=symbol_set, cleaners=cleaners)
