"""Command-line options of ``evaluate_voice``: checkpoints, the list, what it is compared with, and how it is spoken."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.checkpoints.loading import LoadedCheckpoint, open_checkpoint
from common.cli import ArgumentParser, add_precision_arguments, given_options, precision_from_args
from common.errors import OptionError
from common.evaluation.items import READERS, ListOptions
from common.files import sha256
from common.registry import available_models
from common.synthesis.arguments import add_speaking_arguments, check_roles, specs_of, with_text_options
from common.synthesis.voice import check_ema, contract_of

GRIFFIN_LIM = "griffin-lim"
# Options that the results do not depend on, or whose files they depend on.
_NOT_SETTINGS = {
    *("generator", "vocoder", "list", "output", "fresh", "recordings", "transcripts", "dataset_path"),
    "model_destinations",
}


@dataclass(frozen=True)
class EvaluatedModels:
    """The checkpoints of an evaluation."""

    generator: LoadedCheckpoint
    vocoder: LoadedCheckpoint | None  # None: Griffin-Lim
    recognizer: LoadedCheckpoint | None

    @property
    def by_name(self) -> dict[str, LoadedCheckpoint]:
        """Those that are given; the recognizer by its option."""
        option = self.recognizer.spec.option if self.recognizer is not None else ""
        named = {"generator": self.generator, "vocoder": self.vocoder, option: self.recognizer}
        return {name: one for name, one in named.items() if one is not None}


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
    parser.add_argument(
        "list", type=Path, help="phrases, as inference.py reads them; a column wav names a recording of each"
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("output/evaluation"), help="folder for everything")
    parser.add_argument("--fresh", action="store_true", help="begin anew instead of resuming an earlier run")
    parser.add_argument("--seed", type=int, default=1234, help="of everything random, the same for every phrase")
    group = parser.add_argument_group("comparison")
    for spec in specs_of("recognizer"):
        group.add_argument(f"--{spec.option}", type=Path, help="checkpoint of the recognizer, for WER and CER")
    group.add_argument(
        "--dataset-path",
        type=Path,
        default=Path(),
        help="folder that the columns wav, pitch and duration start from, and that is searched for recordings where "
        "--recordings is not given",
    )
    group.add_argument(
        "--recordings", type=Path, help="folder with recordings under the utterances' names; some may be missing"
    )
    group.add_argument(
        "--transcripts", type=Path, help="list with the words of each utterance, where the list to speak is of phones"
    )
    group = parser.add_argument_group("speaking")
    group.add_argument(
        "--reader",
        choices=READERS,
        default="auto",
        help="what turns words into phones for a voice of IPA phones: eSpeak, as for the quickstart's; none speaks the "
        "list as it is; auto: eSpeak unless the list holds phones",
    )
    add_speaking_arguments(parser, group)
    add_precision_arguments(parser.add_argument_group("computing"))
    return parser


def open_models(args: argparse.Namespace, parser: ArgumentParser) -> EvaluatedModels:
    """The checkpoints, which must fit each other and the options.

    Raises:
        CheckpointError: one cannot be read, or is of a model that does another job.
        InputError: generator and vocoder are of different mel-spectrograms.
        OptionError: an option is about another model.
    """
    generator = open_checkpoint(args.generator, role="generator", ema=args.ema)
    vocoder = recognizer = None
    if args.vocoder != GRIFFIN_LIM:
        vocoder = open_checkpoint(Path(args.vocoder), role="vocoder", ema=args.ema)
    for spec in specs_of("recognizer"):
        if path := getattr(args, spec.option):
            recognizer = open_checkpoint(path, model=spec.name, ema=args.ema)
    models = EvaluatedModels(with_text_options(generator, args), vocoder, recognizer)
    if args.ema:
        check_ema(list(models.by_name.values()))
    check_roles(args, parser, generator=generator.spec, vocoder=None if vocoder is None else vocoder.spec)
    if vocoder is not None:
        contract_of(vocoder, generator, accepted=args.accept_audio_differences)
        if "griffin_lim_iters" in given_options(args, parser):
            raise OptionError(f"--griffin-lim-iters is for {GRIFFIN_LIM}, and a vocoder is given; leave it out")
    return models


def list_options(args: argparse.Namespace, models: EvaluatedModels) -> ListOptions:
    """What to speak and what to compare it with."""
    return ListOptions(
        path=args.list,
        dataset_path=args.dataset_path,
        recordings=args.recordings,
        transcripts=args.transcripts,
        reader=args.reader,
        speaker=args.speaker,
        seed=None if args.p_arpabet is None else args.seed,
        needs_words=models.recognizer is not None,
    )


def facts_of(args: argparse.Namespace, models: EvaluatedModels) -> dict[str, str]:
    """What the page and the JSON say of the run."""
    facts = {"generator": str(args.generator), "vocoder": args.vocoder, "list": str(args.list)}
    if models.recognizer is not None:
        facts[models.recognizer.spec.option] = str(models.recognizer.path)
    return facts | {"precision": precision_from_args(args).name}


def settings_of(args: argparse.Namespace, models: EvaluatedModels) -> dict[str, Any]:
    """All that the results depend on besides the list, in plain types."""
    left_out = _NOT_SETTINGS | {spec.option for spec in specs_of("recognizer")}
    options = {name: value for name, value in vars(args).items() if name not in left_out}
    return {
        "sha256": {name: sha256(one.path) for name, one in models.by_name.items()},
        "options": {name: str(value) if isinstance(value, Path) else value for name, value in options.items()},
    }
