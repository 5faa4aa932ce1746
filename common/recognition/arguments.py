"""``inference.py`` with the checkpoint of a recognizer: its options, and the transcribing that they ask for."""

from collections.abc import Sequence
from pathlib import Path

from common.checkpoints.command_line import models_with, open_named_checkpoints, parse_options
from common.cli import ArgumentParser, names_given
from common.options import add_options, read_options
from common.precision import ComputingOptions
from common.recognition.options import MEASURING, REMOVED, TranscribingOptions
from common.registry import ModelSpec


def named_recognizer(argv: Sequence[str] | None) -> ModelSpec | None:
    """The recognizer whose checkpoint a command line names, if it names one."""
    given = names_given(argv)
    return next((spec for spec in models_with("recognizer") if given & {f"--{spec.option}", "--ckpt"}), None)


def build_parser(spec: ModelSpec) -> ArgumentParser:
    """All options of recognition with a model, its own among them."""
    parser = ArgumentParser(
        description="Transcribe recordings; where their transcripts are known, count the errors too",
        prog=f"inference.py --{spec.option}",
        epilog="Exit status: 0 transcribed; 1 bad input; 2 wrong options.",
    )
    text = f"of {spec.name}"
    parser.add_argument(f"--{spec.option}", "--ckpt", type=Path, required=True, metavar="CHECKPOINT", help=text)
    add_options(parser, TranscribingOptions)
    add_options(parser.add_argument_group(spec.name), spec.inference.options)
    add_options(parser, ComputingOptions, title=MEASURING)
    parser.answer_published(REMOVED)
    return parser


def recognize(argv: Sequence[str] | None, spec: ModelSpec) -> int:
    """Transcribe recordings as a command line says; returns the exit status.

    Raises:
        OptionError: two options do not fit together.
        CheckpointError: the checkpoint cannot be read, is of another model, or has no EMA weights for ``--ema``.
        InputError: a recording cannot be read.
    """
    parser = build_parser(spec)
    args = parse_options(argv, parser, [spec])
    options: TranscribingOptions = read_options(args, TranscribingOptions)
    own, computing = read_options(args, spec.inference.options), read_options(args, ComputingOptions)
    from common.recognition.command import transcribe  # --help needs no PyTorch

    checkpoint = open_named_checkpoints(args, "recognizer")["recognizer"]
    files = parser.files_of(args)
    return transcribe(checkpoint, options, own, precision=computing.prepare(), files=files, parameters=vars(args))
