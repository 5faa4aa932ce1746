"""Extract what models train on from recordings: mel-spectrograms, durations and pitch, and lists of them."""

import argparse
import importlib
import sys
from dataclasses import replace

import torch

import models
from common import distributed
from common.audio.arguments import audio_config_from_args
from common.audio.mel import MelExtractor
from common.audio.pitch_statistics import read_pitch_statistics
from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.loading import open_checkpoint
from common.cli import ArgumentParser, run
from common.config import AudioConfig, TextConfig, differences
from common.data_report.arguments import add_report_arguments, check_report_options, limits_from_args, text_from_args
from common.errors import InputError, OptionError
from common.extraction.arguments import (
    PEAK_NORM,
    check_dataset,
    check_options,
    extraction_parser,
    is_following,
    wanted_pitch,
)
from common.extraction.corpus import FailedElsewhereError, extract_corpus
from common.extraction.features import FROM_ATTENTION, FROM_FILES, FROM_TEXTGRIDS, ExtractionPlan, Follower
from common.extraction.summary import table
from common.extraction.teacher import Follow
from common.files import sha256

INTERRUPTED = 130  # exit status, as a shell gives it to a command ended by Ctrl-C
TACOTRON2 = "Tacotron2"


def audio_from_args(args: argparse.Namespace, checkpoint: Checkpoint | None) -> AudioConfig:
    """The mels that the options describe; a Tacotron 2's ``checkpoint`` gives what they leave out, and must agree."""
    base = None if checkpoint is None else checkpoint.audio
    try:
        audio = audio_config_from_args(args, base=base)
        if args.peak_norm:
            audio = replace(audio, peak=PEAK_NORM)
        MelExtractor(audio)  # it knows what cannot be computed
    except InputError as error:
        raise OptionError(str(error)) from error
    if checkpoint is not None:
        unrecorded = {name: getattr(audio, name) for name in checkpoint.assumed}
        names = ("options", str(args.tacotron2_checkpoint))
        if lines := differences(audio, replace(checkpoint.audio, **unrecorded), names=names):
            raise OptionError(f"Tacotron 2 knows other mel-spectrograms: {'; '.join(lines)}; leave these options out")
    return audio


def follower_from_args(args: argparse.Namespace, checkpoint: Checkpoint) -> Follower:
    """Which Tacotron 2 follows the recordings, and how it reads their transcripts."""
    text = checkpoint.text or TextConfig()
    text = replace(
        text,
        symbol_set=args.symbol_set or text.symbol_set,
        cleaners=text.cleaners if args.text_cleaners is None else tuple(args.text_cleaners),
    )
    return Follower(TACOTRON2, sha256(args.tacotron2_checkpoint), text, args.unknown_symbols)


def load_follower(
    args: argparse.Namespace, checkpoint: Checkpoint, plan: ExtractionPlan, device: torch.device
) -> Follow:
    """The network that follows recordings, on ``device``."""
    checkpoint = replace(checkpoint, text=plan.follower.text)
    networks, _ = models.load_networks(checkpoint, device=device, where=str(args.tacotron2_checkpoint))
    network = next(iter(networks.values()))
    network.prepare_for_inference()
    package = models.get_package(TACOTRON2).__name__
    return importlib.import_module(f"{package}.follower").Follower(network)


def plan_from_args(args: argparse.Namespace, checkpoint: Checkpoint | None) -> ExtractionPlan:
    """What the options ask for; ``checkpoint`` is of the Tacotron 2 that they name."""
    audio = audio_from_args(args, checkpoint)
    kinds = wanted_pitch(args)
    durations_from = None
    if args.extract_durations:
        durations_from = FROM_ATTENTION
    elif args.extract_durs_from_textgrids:
        durations_from = FROM_TEXTGRIDS
    elif any(kind != "pitch_mel" for kind in kinds):
        durations_from = FROM_FILES
    return ExtractionPlan(
        dataset_path=args.dataset_path,
        audio=audio,
        mels=args.extract_mels,
        pitch=kinds,
        frame_pitch=args.extract_pitch,
        pitch_method=args.pitch_method,
        durations_from=durations_from,
        symbols_are_characters=args.input_type == "char",
        trim_silence=args.trim_silence,
        max_wav_value=args.max_wav_value,
        resume=args.resume,
        attentions=args.extract_attentions,
        mels_teacher=args.extract_mels_teacher,
        follower=None if checkpoint is None else follower_from_args(args, checkpoint),
    )


def report_on_data(args: argparse.Namespace) -> int:
    """Say what is wrong with the recordings and transcripts, before anything is made of them."""
    from common.data_report import run as data_report  # it draws, which workers need not load
    from common.data_report.words import terminal

    def audio_of(rate: int | None) -> AudioConfig:
        given = {} if rate is None or hasattr(args, "sampling_rate") else {"sampling_rate": rate}
        return audio_from_args(argparse.Namespace(**vars(args), **given), None)

    output = args.report_output or args.dataset_path / "data_report"
    audio_of(None)  # wrong options are said first
    data_report.open_output(output)
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


def build_parser() -> ArgumentParser:
    """The options of an extraction, and those of a data report."""
    parser = extraction_parser()
    add_report_arguments(parser)
    return parser


def main() -> int:
    parser = build_parser()
    args = parser.parse_args()
    check_report_options(args, parser)
    if args.report:
        check_dataset(args)
        return report_on_data(args)
    check_options(args)
    checkpoint = None
    if is_following(args):
        checkpoint = open_checkpoint(TACOTRON2, args.tacotron2_checkpoint, ema=False).checkpoint
    plan = plan_from_args(args, checkpoint)
    given = None if args.pitch_mean_std_file is None else read_pitch_statistics(args.pitch_mean_std_file)
    ranks = distributed.start(cuda=args.cuda)
    try:
        report = extract_corpus(
            plan,
            lists=args.wav_text_filelist,
            meta_files=args.output_meta_file,
            given=given,
            follower=checkpoint and load_follower(args, checkpoint, plan, ranks.device),
            ranks=ranks,
            n_workers=args.num_workers or distributed.own_cores(),
        )
    except FailedElsewhereError:
        return 1
    except KeyboardInterrupt:
        print("interrupted; what is whole stays, --resume goes on from there", file=sys.stderr)
        return INTERRUPTED
    finally:
        distributed.stop()
    if ranks.is_main:
        print(table(report, plan))
    return 1 if report.refused else 0


if __name__ == "__main__":
    run(main)
