"""Command-line options of ``evaluate_voice``: checkpoints, the list, what it is compared with, and how it is spoken."""

import argparse
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import torch

from common.checkpoints import LoadedCheckpoint, open_checkpoint
from common.checkpoints.command_line import check_ema, models_with, open_named_checkpoints, parse_options
from common.cli import ArgumentParser, precision_from_args
from common.evaluation.items import READERS
from common.evaluation.packages import installed
from common.evaluation.results import GRIFFIN_LIM
from common.files import sha256
from common.options import add_options
from common.precision import ComputingOptions
from common.registry import ModelSpec, available_models
from common.synthesis.arguments import add_voice_options, read_voice_options, unsupported_options
from common.synthesis.options import VoiceOptions

# Options that the results do not depend on, or whose files they depend on.
_NOT_SETTINGS = set("generator vocoder list output fresh recordings transcripts dataset_path".split())


def build_parser(models: Sequence[ModelSpec], without: Collection[str] = ()) -> ArgumentParser:
    """The options, with those of ``models`` that speak, but for fields ``without``."""
    parser = ArgumentParser(
        prog="evaluate_voice.sh",
        description="Speak a list, or copy its recordings, and measure errors, distance from recordings, and speed",
        epilog="Exit status: 0 all evaluated; 1 bad input, or some utterances could not be evaluated (the report says "
        "which); 2 wrong options; 128 + a signal's number if one stopped the run.",
    )
    generators, vocoders = (" or ".join(available_models(role)) for role in ("generator", "vocoder"))
    text = f"text-to-mel checkpoint: {generators}; without it the vocoder copies the list's recordings"
    parser.add_argument("generator", type=Path, nargs="?", help=text)
    parser.add_argument("vocoder", help=f"{GRIFFIN_LIM}, or a mel-to-sound checkpoint: {vocoders}")
    text = "phrases, as inference.py reads them; a column wav names a recording of each"
    parser.add_argument("list", type=Path, help=text)
    parser.add_argument("-o", "--output", type=Path, default=Path("output/evaluation"), help="folder for everything")
    parser.add_argument("--fresh", action="store_true", help="begin anew instead of resuming an earlier run")
    group = parser.add_argument_group("comparison")
    for spec in models_with("recognizer"):
        group.add_argument(f"--{spec.option}", type=Path, help="recognizer for WER and CER; pocketsphinx if not given")
    text = "folder that the columns wav, pitch and duration start from, and that is searched for recordings where"
    group.add_argument("--dataset-path", type=Path, default=Path(), help=f"{text} --recordings is not given")
    text = "folder with recordings under the utterances' names; some may be missing"
    group.add_argument("--recordings", type=Path, help=text)
    text = "list with the words of each utterance, where the list to speak is of phones"
    group.add_argument("--transcripts", type=Path, help=text)
    group = parser.add_argument_group("text to speak")
    text = (
        "what turns words into phones for a voice of IPA phones: eSpeak, as for the quickstart's; none speaks the list "
        "as it is; auto: eSpeak unless the list holds phones"
    )
    group.add_argument("--reader", choices=READERS, default="auto", help=text)
    add_voice_options(parser, models, without={"acceleration", "fade_out", *without})
    add_options(parser.add_argument_group("computing"), ComputingOptions)
    return parser


def parse_and_open(
    argv: Sequence[str] | None,
) -> tuple[argparse.Namespace, dict[str, LoadedCheckpoint], list[tuple[str, Path]]]:
    """The options, the checkpoints by role, which must fit each other, and the files that options name to be read.

    Raises:
        CheckpointError: one cannot be read, or is of a model that does another job.
        InputError: generator and vocoder are of different mel-spectrograms.
    """
    every = models_with("generator", "vocoder")
    args = parse_options(argv, build_parser(every), every, intermixed=True)  # as the first word may be left out
    models = {}
    if args.generator is not None:
        models["generator"] = open_checkpoint(args.generator, role="generator", ema=args.ema)
    if args.vocoder != GRIFFIN_LIM:
        models["vocoder"] = open_checkpoint(Path(args.vocoder), role="vocoder", ema=args.ema)
    specs = {role: one.spec for role, one in models.items()}
    parser = build_parser(list(specs.values()), unsupported_options(specs) - {"ema"})  # a recognizer has it, too
    args = parse_options(argv, parser, list(specs.values()), intermixed=True)
    models |= open_named_checkpoints(args, "recognizer")
    if args.ema and models:
        check_ema(list(models.values()))
    return args, models, parser.files_of(args)[1]


def voice_options(args: argparse.Namespace, models: dict[str, LoadedCheckpoint]) -> VoiceOptions:
    """How the checkpoints speak."""
    specs = {role: one.spec for role, one in models.items() if role != "recognizer"}
    return read_voice_options(args, specs)


def facts_and_settings(
    args: argparse.Namespace, models: dict[str, LoadedCheckpoint]
) -> tuple[dict[str, str], dict[str, Any]]:
    """What the page and the JSON say of the run, and all that its results depend on besides the list, plain types."""
    named = {one.spec.option if role == "recognizer" else role: one for role, one in models.items()}
    facts = {"vocoder": args.vocoder, "list": str(args.list)}
    if args.generator is not None:
        facts = {"generator": str(args.generator), **facts}
    if recognizer := models.get("recognizer"):
        facts[recognizer.spec.option] = str(recognizer.path)
    facts |= {"precision": precision_from_args(args).name, "threads": str(torch.get_num_threads())}
    left_out = _NOT_SETTINGS | {spec.option for spec in models_with("recognizer")}
    options = {name: str(value) if isinstance(value, Path) else value for name, value in vars(args).items()}
    settings = {
        "sha256": {name: sha256(one.path) for name, one in named.items()},
        "packages": sorted(installed()),
        "options": {name: value for name, value in options.items() if name not in left_out},
    }
    return facts, settings
