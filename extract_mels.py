"""Extract what models train on from recordings: mel-spectrograms, durations and pitch, and lists of them."""

import argparse
import functools
from collections.abc import Sequence
from pathlib import Path

from common import distributed
from common.audio import read_pitch_statistics
from common.audio.arguments import corpus_config, corpus_note
from common.checkpoints import LoadedCheckpoint, load_for_inference, open_checkpoint
from common.checkpoints.command_line import check_ema
from common.cli import ArgumentParser, precision_from_args, run
from common.config import AudioConfig
from common.data_report.arguments import add_report_arguments, check_report_options, limits_from_args, text_from_args
from common.distributed import Ranks
from common.errors import say_last
from common.extraction import TeacherModel, earlier_statistics, extract_corpus, make_teacher_forced_mels
from common.extraction.arguments import (
    audio_from_args,
    check_dataset,
    check_options,
    extraction_parser,
    open_teacher,
    parse_teacher_forcing_args,
    plan_from_args,
    teacher_forcing_from_args,
    wants_teacher_forcing,
)
from common.extraction.summary import table, teacher_forced_table
from common.options import read_options
from common.registry import GeneratorSpec
from common.signals import ended_by
from common.synthesis.loading import with_front_end
from common.synthesis.options import FrontEndOptions


def build_parser() -> ArgumentParser:
    """The options of an extraction, and those of a data report."""
    parser = extraction_parser()
    add_report_arguments(parser)
    return parser


def report_on_data(args: argparse.Namespace, read: Sequence[tuple[str, Path]]) -> int:
    """Report what is wrong with recordings and transcripts, before any feature is made; ``read`` is not written."""
    from common.data_report import run as data_report  # it draws, which workers need not load
    from common.data_report.words import terminal

    def audio_of(rate: int | None) -> AudioConfig:
        is_known = rate is None or hasattr(args, "sampling_rate") or corpus_config(args) is not None
        given = {} if is_known else {"sampling_rate": rate}
        return audio_from_args(argparse.Namespace(**vars(args), **given))

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
    print(terminal(report))
    for path in data_report.write(report, output):
        print(path)
    return data_report.exit_status(report, strict=args.report_strict)


def load_teacher(loaded: LoadedCheckpoint, ranks: Ranks) -> TeacherModel:
    """The teacher's network."""
    inference = loaded.spec.inference
    assert isinstance(inference, GeneratorSpec) and inference.teacher is not None
    return functools.partial(inference.teacher, load_for_inference(loaded, device=ranks.device)[0])


def extract(args: argparse.Namespace, read: Sequence[tuple[str, Path]]) -> int:
    """Extract features; exit status 1 if an utterance was refused; ``read`` is not written."""
    check_options(args)
    teacher = open_teacher(args)
    plan = plan_from_args(args, teacher)
    notes = corpus_note(plan.audio, corpus_config(args))
    if args.pitch_mean_std_file is not None:
        files = dict.fromkeys(plan.pitch, args.pitch_mean_std_file)
    else:
        files = earlier_statistics(plan, args.wav_text_filelist[0])
        notes += [
            f"{kind} is normalized by {path}, of the list that was extracted before; to take the statistics of "
            f"{args.wav_text_filelist[0].name} instead, move that file away"
            for kind, path in files.items()
        ]
    given = {kind: read_pitch_statistics(path) for kind, path in files.items()}
    with distributed.processes(cuda=args.cuda) as ranks:
        for note in notes if ranks.is_main else ():
            print(note)
        try:
            report = extract_corpus(
                plan,
                lists=args.wav_text_filelist,
                meta_files=args.output_meta_file,
                given=given,
                read=[*read, *files.items()],
                teacher=None if teacher is None else load_teacher(teacher, ranks),
                ranks=ranks,
                n_workers=args.num_workers or distributed.own_cores(),
            )
        except KeyboardInterrupt as error:
            line, status = ended_by(error)
            if ranks.is_main:
                say_last(f"{line}; complete files stay, --resume continues from there")
            return status
    if not ranks.is_main:  # torchrun would end the first process, before its table, for the status of another
        return 0
    print(table(report, plan))
    return 1 if report.refused else 0


def extract_teacher_forced(argv: Sequence[str] | None) -> int:
    """Make a generator's own mels; exit status 1 if a clip was refused, 128 + a signal's number if one stopped it."""
    args = parse_teacher_forcing_args(argv)
    precision = precision_from_args(args)
    precision.prepare_process()
    loaded = open_checkpoint(args.checkpoint, role="generator", ema=args.ema)
    if args.ema:
        check_ema([loaded])
    options = teacher_forcing_from_args(args, loaded)
    loaded = with_front_end(loaded, read_options(args, FrontEndOptions))
    report = make_teacher_forced_mels(loaded, options, precision)
    print(teacher_forced_table(report))
    if report.stopped_by is not None:
        print(f"stopped by {report.stopped_by.name}; add --resume to continue")
        return 128 + report.stopped_by
    return 1 if report.refused else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Extract features, report on the data, or make a generator's own mels."""
    if wants_teacher_forcing(argv):
        return extract_teacher_forced(argv)
    parser = build_parser()
    args = parser.parse_args(argv)
    check_report_options(args, parser)
    if args.report:
        check_dataset(args)
        return report_on_data(args, parser.files_of(args)[1])
    return extract(args, parser.files_of(args)[1])


if __name__ == "__main__":
    run(main)
