"""Extract training features from recordings: mel-spectrograms, durations and pitch, and the lists that name them."""

import argparse
import sys
from collections.abc import Sequence

from common.audio.options import AudioOptions
from common.cli import ArgumentParser, names_given, run
from common.data_report.options import Limits, ReportOptions
from common.errors import InputError
from common.extraction.options import (
    ExtractionOptions,
    TeacherForcingOptions,
    chosen_teacher,
    extraction_parser,
    teacher_forcing_parser,
)
from common.options import add_options, read_options
from common.signals import ended_by
from common.text.options import TextOverrides

# Modules that need PyTorch are imported inside functions, so that --help is fast.


def build_parser() -> ArgumentParser:
    """Build the parser for extracting features and for data reports."""
    parser = extraction_parser()
    about = "analyze recordings and transcripts instead of extracting features"
    group = parser.add_argument_group("data report", about)
    add_options(group, ReportOptions)
    add_options(group, Limits)
    return parser


def report_on_data(args: argparse.Namespace) -> int:
    """Report problems with recordings and transcripts, without extracting features."""
    from common.data_report.run import report_on_corpus

    kinds = (ExtractionOptions, AudioOptions, ReportOptions, Limits)
    return report_on_corpus(*(read_options(args, kind) for kind in kinds))


def extract(args: argparse.Namespace) -> int:
    """Extract features; return exit status 1 if an utterance was refused."""
    from common.checkpoints.loading import load_for_inference
    from common.extraction.batches import mel_settings, open_teacher, stored_teacher
    from common.extraction.corpus import extract_corpus, table
    from common.extraction.features import ExtractionPlan
    from common.precision import precision_of_device

    options: ExtractionOptions = read_options(args, ExtractionOptions)
    options.check()
    chosen = chosen_teacher(args, options)
    text = TextOverrides(symbol_set=options.symbol_set, text_cleaners=options.text_cleaners)
    teacher = None if chosen is None else open_teacher(chosen[1], text, ema=options.ema, model=chosen[0])
    audio: AudioOptions = read_options(args, AudioOptions)
    config = mel_settings(audio, corpus=options.dataset_path, teacher=teacher)
    plan = ExtractionPlan(options, config, None if teacher is None else stored_teacher(teacher, options))
    device = precision_of_device("cuda" if options.cuda else "cpu").device
    try:
        network = None if teacher is None else load_for_inference(teacher, device=device)[0].teach
        report = extract_corpus(plan, teacher=network, device=device)
    except KeyboardInterrupt as error:
        line, status = ended_by(error)
        print(f"{line}; finished files are kept, add --resume to continue", file=sys.stderr)
        return status
    print(*table(report, options.folders), sep="\n")
    return 1 if report.refused else 0


def extract_teacher_forced(args: argparse.Namespace) -> int:
    """Generate teacher-forced mels; return 1 if a clip was refused, 128 + the signal's number if one stopped it."""
    from common.extraction.batches import open_teacher
    from common.extraction.corpus import table
    from common.extraction.teacher_forcing import make_teacher_forced_mels
    from common.precision import prepare_computing

    options: TeacherForcingOptions = read_options(args, TeacherForcingOptions, unknown_symbols=args.unknown_symbols)
    precision = prepare_computing(options.computing)
    loaded = open_teacher(args.checkpoint, read_options(args, TextOverrides), ema=options.ema)
    report = make_teacher_forced_mels(loaded, options, precision)
    print(*table(report, [str(options.output)]), sep="\n")
    if report.stopped_by is not None:
        print(f"stopped by {report.stopped_by.name}; add --resume to continue")
        return 128 + report.stopped_by
    return 1 if report.refused else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Extract features, report on the data, or generate teacher-forced mels."""
    if names_given(argv) & {"--checkpoint", "--checkpoint-path"}:
        return extract_teacher_forced(teacher_forcing_parser().parse_args(argv))
    args = build_parser().parse_args(argv)
    if not args.dataset_path.is_dir():
        raise InputError(f"{args.dataset_path}: no such folder; give the dataset's folder as --dataset-path")
    return report_on_data(args) if args.report else extract(args)


if __name__ == "__main__":
    run(main)
