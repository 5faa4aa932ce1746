"""Command-line options of speech recognition: ``inference.py`` with the checkpoint of a recognizer."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.checkpoints import add_ema_argument, open_checkpoint
from common.cli import (
    ArgumentParser,
    add_precision_arguments,
    names_given,
    non_negative_int,
    option_of,
    positive_float,
    positive_int,
    precision_from_args,
)
from common.errors import OptionError
from common.files import check_apart
from common.published_options import RECOGNITION
from common.recognition.command import transcribe_all
from common.recognition.recognizer import load_recognizer
from common.registry import ModelSpec, RecognizerSpec
from common.synthesis import check_ema
from common.synthesis.arguments import parse_model_options, specs_of

OUTPUTS = (".json", ".tsv", ".txt")
LOG = "nvlog_infer.json"  # in a folder of --output


class _Output(argparse.Action):
    """``output``, the file for transcripts; a folder, as the original's ``--output-dir``, is ``output_folder``."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        setattr(namespace, "output" if values.suffix else "output_folder", values)


def chosen_recognizer(argv: Sequence[str] | None) -> ModelSpec | None:
    """The recognizer whose checkpoint a command line gives, if it gives one."""
    given = names_given(argv)
    return next((spec for spec in specs_of("recognizer") if given & {f"--{spec.option}", "--ckpt"}), None)


def build_parser(spec: ModelSpec) -> ArgumentParser:
    """All options of recognition with a model, its own among them."""
    parser = ArgumentParser(
        description="Transcribe recordings; where their transcripts are known, count the errors too",
        prog=f"inference.py --{spec.option}",
        epilog="Exit status: 0 transcribed; 1 bad input; 2 wrong options.",
    )
    text = f"of {spec.name}"
    parser.add_argument(f"--{spec.option}", "--ckpt", type=Path, required=True, metavar="CHECKPOINT", help=text)
    text = "manifests (JSON), lists of wavs/a.wav|transcript, folders, or recordings"
    names = ("-i", "--input", "--transcribe-wav", "--transcribe-filelist")  # the last two as in the original
    parser.add_argument(*names, type=Path, nargs="+", action="extend", required=True, help=text)
    text = "folder that manifests and lists are relative to"
    parser.add_argument("-d", "--dataset-path", type=Path, default=Path(), help=text)
    text = (
        f"file for transcripts and errors, name.json or name.tsv, or for transcripts alone, name.txt; a folder is for "
        f"the log, {LOG}, and both may be given"
    )
    parser.add_argument("-o", "--output", type=Path, action=_Output, metavar="PATH", help=text)
    parser.set_defaults(output_folder=None)
    text = "file for log-probabilities: a list of tensors (frames, labels and blank), one a recording, for torch.load"
    parser.add_argument("--save-logits", type=Path, metavar="FILE", help=text)
    parser.add_argument("--quiet", action="store_true", help="print the figures alone")
    parser.add_argument("--log-file", type=Path, help="JSON log of the figures")
    add_ema_argument(parser)
    parser.add_argument("--max-duration", type=positive_float, help="leave out recordings of more seconds")
    assert isinstance(spec.inference, RecognizerSpec)
    spec.inference.add_arguments(parser)
    group = parser.add_argument_group("computing and measuring")
    add_precision_arguments(group)
    group.add_argument("-bs", "--batch-size", type=positive_int, default=16, help="recordings at once")
    text = "measure so many batches, repeating them if need be, and write nothing; 0: transcribe all recordings once"
    group.add_argument("--iterations", type=non_negative_int, default=0, help=text)
    group.add_argument("--warmup-steps", type=non_negative_int, default=0, help="batches before measuring begins")
    text = "pad all batches to the length of --max-duration"
    group.add_argument("--pad-to-max-duration", action="store_true", help=text)
    parser.answer_published(RECOGNITION)
    return parser


def parse_recognition_args(argv: Sequence[str] | None, spec: ModelSpec) -> argparse.Namespace:
    """The checked options of recognition with a model.

    Raises:
        OptionError: two options do not fit together.
    """
    args = build_parser(spec).parse_args(argv)
    if args.pad_to_max_duration and args.max_duration is None:
        raise OptionError("--pad-to-max-duration needs --max-duration")
    if not args.iterations and args.warmup_steps:
        raise OptionError("--warmup-steps needs --iterations, which measures")
    for name in ("output", "save_logits"):
        if args.iterations and getattr(args, name) is not None:
            needed = f"{option_of(name)} needs transcripts, and --iterations only measures"
            raise OptionError(f"{needed}; leave one of them out")
    if args.output is not None and args.output.suffix not in OUTPUTS:
        ends = " or ".join(OUTPUTS)
        raise OptionError(f"--output {args.output}: expected a file that ends with {ends}, or a folder for the log")
    if args.log_file is None and args.output_folder is not None:
        args.log_file = args.output_folder / LOG
    return args


def recognize(argv: Sequence[str] | None, spec: ModelSpec) -> int:
    """Transcribe recordings as a command line says; see `common.recognition.command.transcribe_all`.

    Raises:
        OptionError: two options do not fit together.
        CheckpointError: the checkpoint cannot be read, is of another model, or has no EMA weights for ``--ema``.
        InputError: a recording cannot be read.
    """
    args = parse_recognition_args(argv, spec)
    precision = precision_from_args(args)
    checkpoint = open_checkpoint(getattr(args, spec.option), model=spec.name, ema=args.ema)
    if args.ema:
        check_ema([checkpoint])
    precision.prepare_process()
    recognizer = load_recognizer(
        checkpoint,
        options=parse_model_options(args, spec),
        precision=precision,
        batch_size=args.batch_size,
        padded_duration=args.max_duration if args.pad_to_max_duration else 0.0,
    )
    items = recognizer.open(args.input, folder=args.dataset_path)
    written, read = build_parser(spec).files_of(args)
    read += [("--input", path / "metadata.csv") for path in args.input]  # that of a folder
    check_apart(written, [*read, *(("a recording of --input", Path(one.name)) for one in items)])
    return transcribe_all(
        recognizer,
        items,
        output=args.output,
        save_logits=args.save_logits,
        log_file=args.log_file,
        quiet=args.quiet,
        iterations=args.iterations,
        warmup_steps=args.warmup_steps,
        parameters=vars(args),
    )
