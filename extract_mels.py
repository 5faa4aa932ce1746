"""Extract what models train on from recordings: mel-spectrograms, durations and pitch, and lists of them."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from common import distributed
from common.audio import read_pitch_statistics
from common.audio.options import AudioOptions, corpus_note
from common.checkpoints import open_checkpoint
from common.cli import ArgumentParser, run
from common.config import AudioConfig
from common.data_report.arguments import add_report_arguments, check_report_options, limits_from_args, text_from_args
from common.errors import InputError, say_last
from common.extraction import (
    ExtractionOptions,
    ExtractionPlan,
    TeacherForcingOptions,
    earlier_statistics,
    extract_corpus,
    load_teacher,
    make_teacher_forced_mels,
    mel_settings,
    open_teacher,
    stored_teacher,
)
from common.extraction.arguments import chosen_teacher, extraction_parser, teacher_forcing_parser, wants_teacher_forcing
from common.extraction.summary import table, teacher_forced_table
from common.options import read_options
from common.signals import ended_by
from common.synthesis.arguments import with_text_options


def build_parser() -> ArgumentParser:
    """The options of an extraction, and those of a data report."""
    parser = extraction_parser()
    add_report_arguments(parser)
    return parser


def report_on_data(args: argparse.Namespace, read: Sequence[tuple[str, Path]]) -> int:
    """Report what is wrong with recordings and transcripts, before any feature is made; ``read`` is not written."""
    from common.data_report import run as data_report  # it draws, which workers need not load

    def audio_of(rate: int | None) -> AudioConfig:
        is_known = rate is None or options.sampling_rate or options.of_corpus(args.dataset_path) is not None
        return mel_settings(options if is_known else replace(options, sampling_rate=rate), corpus=args.dataset_path)

    options = read_options(args, AudioOptions)
    output = args.report_output or args.dataset_path / "data_report"
    audio_of(None)  # wrong options are reported first
    data_report.open_output(output, read)
    report = data_report.analyze_corpus(
        args.wav_text_filelist,
        dataset=args.dataset_path,
        audio_of=audio_of,
        text=text_from_args(args),
        limits=limits_from_args(args),
        max_wav_value=args.max_wav_value,
        n_workers=args.num_workers or distributed.own_cores(),
    )
    from common.data_report.words import terminal

    print(terminal(report))
    for path in data_report.write(report, output):
        print(path)
    return data_report.exit_status(report, strict=args.report_strict)


def extract(args: argparse.Namespace) -> int:
    """Extract features; exit status 1 if an utterance was refused."""
    options: ExtractionOptions = read_options(args, ExtractionOptions)
    options.check()
    chosen = chosen_teacher(args, options)
    teacher = None if chosen is None else open_teacher(*chosen, options)
    audio_options: AudioOptions = read_options(args, AudioOptions)
    plan = ExtractionPlan(options, mel_settings(audio_options, corpus=options.dataset_path, teacher=teacher))
    if teacher is not None:
        plan = replace(plan, teacher=stored_teacher(teacher, options))
    notes = corpus_note(plan.audio, audio_options.of_corpus(options.dataset_path))
    if options.pitch_mean_std_file is not None:
        files = dict.fromkeys(options.pitch, options.pitch_mean_std_file)
    else:
        files = earlier_statistics(options)
        notes += [
            f"{kind} is normalized by {path}, of the list that was extracted before; to take the statistics of "
            f"{options.wav_text_filelist[0].name} instead, move that file away"
            for kind, path in files.items()
        ]
    plan = replace(plan, statistics={kind: read_pitch_statistics(path) for kind, path in files.items()})
    with distributed.processes(cuda=options.cuda) as ranks:
        for note in notes if ranks.is_main else ():
            print(note)
        try:
            network = None if teacher is None else load_teacher(teacher, ranks.device)
            report = extract_corpus(plan, teacher=network, ranks=ranks)
        except KeyboardInterrupt as error:
            line, status = ended_by(error)
            if ranks.is_main:
                say_last(f"{line}; complete files stay, --resume continues from there")
            return status
    if not ranks.is_main:  # torchrun would end the first process, before its table, for the status of another
        return 0
    print(table(report, plan))
    return 1 if report.refused else 0


def extract_teacher_forced(args: argparse.Namespace) -> int:
    """Make a generator's own mels; exit status 1 if a clip was refused, 128 + a signal's number if one stopped it."""
    options: TeacherForcingOptions = read_options(args, TeacherForcingOptions, unknown_symbols=args.unknown_symbols)
    precision = options.computing.precision()
    precision.prepare_process()
    loaded = with_text_options(open_checkpoint(args.checkpoint, role="generator", ema=options.ema), args)
    report = make_teacher_forced_mels(loaded, options, precision)
    print(teacher_forced_table(report))
    if report.stopped_by is not None:
        print(f"stopped by {report.stopped_by.name}; add --resume to continue")
        return 128 + report.stopped_by
    return 1 if report.refused else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Extract features, report on the data, or make a generator's own mels."""
    if wants_teacher_forcing(argv):
        return extract_teacher_forced(teacher_forcing_parser().parse_args(argv))
    parser = build_parser()
    args = parser.parse_args(argv)
    check_report_options(args, parser)
    if not args.dataset_path.is_dir():
        raise InputError(f"{args.dataset_path}: no such folder; --dataset-path holds the wavs")
    return report_on_data(args, parser.files_of(args)[1]) if args.report else extract(args)


if __name__ == "__main__":
    run(main)
