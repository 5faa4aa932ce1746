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
    """The options of an extraction from recordings."""
    parser = ArgumentParser(
        description="Extract mel-spectrograms, durations and pitch of the recordings in a list.",
        epilog="Exit status: 0 all utterances made, 1 some refused or bad input, 2 wrong options. The mels that a "
        "text-to-mel model makes, to fine-tune a vocoder on, have options of their own: --checkpoint FILE --help.",
    )
    add_options(parser, CorpusOptions, title="data")
    add_options(parser, FeatureOptions, title="what to extract")
    does = "the text-to-mel model whose attention gives durations; mels and text are as its checkpoint says"
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
    about = "what the mel-spectrograms are; what is left out takes the value in brackets, or suits --sampling-rate"
    group = parser.add_argument_group("audio", about)
    add_options(group, AudioOptions)
    text = f"the same as --peak {_PEAK_NORM:.6f}"
    group.add_argument("--peak-norm", dest="peak", action="store_const", const=_PEAK_NORM, help=text)


def _teachers() -> dict[str, ModelSpec]:
    """The models whose attention gives durations, by the destination of their option."""
    return {f"{spec.option}_checkpoint": spec for spec in models_with("generator") if spec.is_teacher}


def chosen_teacher(args: argparse.Namespace, options: ExtractionOptions) -> tuple[ModelSpec, Path] | None:
    """The model that makes what ``options`` want of a teacher, and its checkpoint's path; None if they want nothing.

    Raises OptionError if they want something and no teacher is given, or several.
    """
    given = [(spec, getattr(args, name)) for name, spec in _teachers().items() if getattr(args, name) is not None]
    if not options.taught:
        return None
    if len(given) != 1:
        wanted = f"{option_of(f'extract_{options.taught[0]}')} needs {' or '.join(map(option_of, _teachers()))}"
        raise OptionError(wanted + "; or use --extract-durs-from-textgrids" * options.extract_durations)
    return given[0]


def teacher_forcing_parser() -> ArgumentParser:
    """The options of ``extract_mels.py --checkpoint``."""
    parser = ArgumentParser(
        prog="extract_mels.py",
        description="Make a text-to-mel model's mels of a corpus, teacher-forced, to fine-tune a vocoder on.",
        epilog="Exit status: 0 all clips made, 1 some refused or bad input, 2 wrong options.",
    )
    add_options(parser, TeacherForcingOptions)
    add_options(parser, TextOverrides, title="text")
    parser.answer_published(architecture_answers(models_with("generator")) | _removed("checkpoint"))
    return parser
