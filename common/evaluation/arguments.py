"""Command-line options of ``evaluate_voice``: checkpoints, the list, what it is compared with, and how it is spoken."""

import argparse
from pathlib import Path
from typing import Any

from common.checkpoints import LoadedCheckpoint, open_checkpoint
from common.cli import ArgumentParser, add_precision_arguments, precision_from_args, seed_number
from common.evaluation.items import READERS
from common.files import sha256
from common.registry import available_models
from common.synthesis import check_ema, contract_of
from common.synthesis.arguments import add_speaking_arguments, check_roles, specs_of, with_text_options

GRIFFIN_LIM = "griffin-lim"
# Options that the results do not depend on, or whose files they depend on.
_NOT_SETTINGS = set(
    "generator vocoder list output fresh recordings transcripts dataset_path model_destinations".split()
)


def build_parser() -> ArgumentParser:
    """The options; ``--<option of a recognizer>`` takes its checkpoint."""
    parser = ArgumentParser(
        prog="evaluate_voice.sh",
        description="Speak a list, and measure error rates, the distance from recordings, and speed",
        epilog="Exit status: 0 all evaluated; 1 bad input, or some utterances could not be evaluated (the report says "
        "which); 2 wrong options; 128 + a signal's number if one stopped the run.",
    )
    generators, vocoders = (" or ".join(available_models(role)) for role in ("generator", "vocoder"))
    parser.add_argument("generator", type=Path, help=f"text-to-mel checkpoint: {generators}")
    parser.add_argument("vocoder", help=f"{GRIFFIN_LIM}, or a mel-to-sound checkpoint: {vocoders}")
    text = "phrases, as inference.py reads them; a column wav names a recording of each"
    parser.add_argument("list", type=Path, help=text)
    parser.add_argument("-o", "--output", type=Path, default=Path("output/evaluation"), help="folder for everything")
    parser.add_argument("--fresh", action="store_true", help="begin anew instead of resuming an earlier run")
    parser.add_argument(
        "--seed", type=seed_number, default=1234, help="of everything random, the same for every phrase"
    )
    group = parser.add_argument_group("comparison")
    for spec in specs_of("recognizer"):
        group.add_argument(f"--{spec.option}", type=Path, help="checkpoint of the recognizer, for WER and CER")
    text = "folder that the columns wav, pitch and duration start from, and that is searched for recordings where"
    group.add_argument("--dataset-path", type=Path, default=Path(), help=f"{text} --recordings is not given")
    text = "folder with recordings under the utterances' names; some may be missing"
    group.add_argument("--recordings", type=Path, help=text)
    text = "list with the words of each utterance, where the list to speak is of phones"
    group.add_argument("--transcripts", type=Path, help=text)
    group = parser.add_argument_group("speaking")
    text = (
        "what turns words into phones for a voice of IPA phones: eSpeak, as for the quickstart's; none speaks the list "
    )
    text += "as it is; auto: eSpeak unless the list holds phones"
    group.add_argument("--reader", choices=READERS, default="auto", help=text)
    add_speaking_arguments(parser, group)
    add_precision_arguments(parser.add_argument_group("computing"))
    return parser


def open_models(args: argparse.Namespace, parser: ArgumentParser) -> dict[str, LoadedCheckpoint]:
    """The checkpoints by role, which must fit each other and the options; Griffin-Lim and no recognizer are absent.

    Raises:
        CheckpointError: one cannot be read, or is of a model that does another job.
        InputError: generator and vocoder are of different mel-spectrograms.
        OptionError: an option is about another model.
    """
    generator = with_text_options(open_checkpoint(args.generator, role="generator", ema=args.ema), args)
    models = {"generator": generator}
    if args.vocoder != GRIFFIN_LIM:
        models["vocoder"] = open_checkpoint(Path(args.vocoder), role="vocoder", ema=args.ema)
    for spec in specs_of("recognizer"):
        if path := getattr(args, spec.option):
            models["recognizer"] = open_checkpoint(path, model=spec.name, ema=args.ema)
    if args.ema:
        check_ema(list(models.values()))
    vocoder = models.get("vocoder")
    check_roles(args, parser, generator=generator.spec, vocoder=None if vocoder is None else vocoder.spec)
    if vocoder is not None:
        contract_of(vocoder, generator, accepted=args.accept_audio_differences)
    return models


def facts_and_settings(
    args: argparse.Namespace, models: dict[str, LoadedCheckpoint]
) -> tuple[dict[str, str], dict[str, Any]]:
    """What the page and the JSON say of the run, and all that its results depend on besides the list, plain types."""
    named = {one.spec.option if role == "recognizer" else role: one for role, one in models.items()}
    facts = {"generator": str(args.generator), "vocoder": args.vocoder, "list": str(args.list)}
    if recognizer := models.get("recognizer"):
        facts[recognizer.spec.option] = str(recognizer.path)
    facts["precision"] = precision_from_args(args).name
    left_out = _NOT_SETTINGS | {spec.option for spec in specs_of("recognizer")}
    options = {name: str(value) if isinstance(value, Path) else value for name, value in vars(args).items()}
    settings = {
        "sha256": {name: sha256(one.path) for name, one in named.items()},
        "options": {name: value for name, value in options.items() if name not in left_out},
    }
    return facts, settings
