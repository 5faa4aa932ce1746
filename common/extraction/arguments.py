"""The command lines of extract_mels.py."""

import argparse
from pathlib import Path

from common.audio.options import AudioOptions
from common.checkpoints.command_line import architecture_answers, models_with
from common.cli import ArgumentParser
from common.errors import OptionError
from common.extraction.options import (
    CorpusOptions,
    ExtractionOptions,
    FeatureOptions,
    TeacherForcingOptions,
    TeacherOptions,
)
from common.options import add_options, option_of
from common.pages.tables import read_table
from common.registry import ModelSpec
from common.text.options import TextOverrides

_PEAK_NORM = 32767 / 32768  # the largest 16-bit sample, as the original scales to


def extraction_parser() -> ArgumentParser:
    """Return the parser for extracting features from recordings."""
    parser = ArgumentParser(
        description="Extract mel-spectrograms, durations and pitch of the recordings in a list.",
        epilog="Exit status: 0 all utterances made, 1 some refused or bad input, 2 wrong options. To make a "
        "text-to-mel model's mels for fine-tuning a vocoder, see --checkpoint FILE --help.",
    )
    add_options(parser, CorpusOptions, title="data")
    add_options(parser, FeatureOptions, title="what to extract")
    does = "the text-to-mel model whose attention gives durations; its checkpoint determines mels and text"
    group = parser.add_argument_group("teacher", does)
    for name, spec in _teachers().items():
        group.add_argument(option_of(name), type=Path, help=f"checkpoint of {spec.name}, ours or published")
    add_options(group, TeacherOptions)
    add_mel_options(parser)
    parser.answer_published(architecture_answers(models_with("generator")) | _removed("recordings"))
    return parser


def _removed(command: str) -> dict[str, str]:
    """Options of the originals that no longer exist, and what to do."""
    return {row["option"]: row["answer"] for row in read_table("extraction/removed.tsv") if row["command"] == command}


def add_mel_options(parser: ArgumentParser) -> None:
    """Add the options that describe mel-spectrograms, as `common.audio.options.AudioOptions` reads them."""
    about = "settings of the mel-spectrograms; by default the value in brackets, or one that suits --sampling-rate"
    group = parser.add_argument_group("audio", about)
    add_options(group, AudioOptions)
    text = f"the same as --peak {_PEAK_NORM:.6f}"
    group.add_argument("--peak-norm", dest="peak", action="store_const", const=_PEAK_NORM, help=text)


def _teachers() -> dict[str, ModelSpec]:
    """Return the models whose attention gives durations, by the destination of their option."""
    return {f"{spec.option}_checkpoint": spec for spec in models_with("generator") if spec.is_teacher}


def chosen_teacher(args: argparse.Namespace, options: ExtractionOptions) -> tuple[ModelSpec, Path] | None:
    """Return the teacher that ``options`` need, and its checkpoint's path; None if they need none.

    Raises OptionError if they need a teacher and none or several are given.
    """
    given = [(spec, getattr(args, name)) for name, spec in _teachers().items() if getattr(args, name) is not None]
    if not options.taught:
        return None
    if len(given) != 1:
        wanted = f"{option_of(f'extract_{options.taught[0]}')} needs {' or '.join(map(option_of, _teachers()))}"
        raise OptionError(wanted + "; or use --extract-durs-from-textgrids" * options.extract_durations)
    return given[0]


def teacher_forcing_parser() -> ArgumentParser:
    """Return the parser of ``extract_mels.py --checkpoint``."""
    parser = ArgumentParser(
        prog="extract_mels.py",
        description="Make a corpus's mels with a teacher-forced text-to-mel model, to fine-tune a vocoder on.",
        epilog="Exit status: 0 all clips made, 1 some refused or bad input, 2 wrong options.",
    )
    add_options(parser, TeacherForcingOptions)
    add_options(parser, TextOverrides, title="text")
    parser.answer_published(architecture_answers(models_with("generator")) | _removed("checkpoint"))
    return parser
