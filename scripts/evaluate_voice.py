"""Evaluates a voice or a vocoder: speaks a list, and measures of each utterance error rates, distances, and speed.

    python -m scripts.evaluate_voice FastPitch.pt HiFi-GAN.pt phrases/devset10.tsv --jasper Jasper.pt
    python -m scripts.evaluate_voice HiFi-GAN.pt copy.tsv

GENERATOR is a text-to-mel checkpoint, VOCODER a mel-to-sound checkpoint or the word griffin-lim; without GENERATOR the
list's recordings are copied. A run that was stopped is resumed when it is started again.
"""

import argparse
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from common.audio import MelExtractor
from common.checkpoints import LoadedCheckpoint, open_checkpoint
from common.checkpoints.command_line import check_ema, models_with, open_named_checkpoints, parse_options
from common.cli import ArgumentParser, run
from common.evaluation.evaluator import Evaluator, copy, speak
from common.evaluation.items import EvaluationItem, read_copies, read_items
from common.evaluation.options import EvaluationOptions
from common.evaluation.packages import Pocketsphinx, installed, note_missing
from common.evaluation.results import GRIFFIN_LIM
from common.evaluation.run import check_files, run_evaluation
from common.files import sha256
from common.options import add_options, read_options
from common.precision import ComputingOptions, Precision
from common.recognition import Recognizer, load_recognizer
from common.registry import ModelSpec, VocoderSpec, available_models
from common.synthesis import GriffinLimVocoder, contract_of
from common.synthesis.arguments import add_voice_options, read_voice_options, unsupported_options
from common.synthesis.loading import make_vocoder, make_voice
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
    add_options(parser, EvaluationOptions)
    for spec in models_with("recognizer"):
        text = "recognizer for WER and CER; pocketsphinx if not given"
        parser.add_argument(f"--{spec.option}", type=Path, help=text)
    # The seed is the evaluation's, and what computes the networks is not compared.
    add_voice_options(parser, models, without={"acceleration", "fade_out", "seed", *without})
    add_options(parser.add_argument_group("computing"), ComputingOptions)
    return parser


def open_models(
    argv: Sequence[str] | None,
) -> tuple[argparse.Namespace, dict[str, LoadedCheckpoint], list[tuple[str, Path]]]:
    """The options, the checkpoints by role, what is not given is absent, and the files to read that options name.

    Raises:
        CheckpointError: one cannot be read, or is of a model that does another job.
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


def prepare_voice(
    args: argparse.Namespace,
    options: EvaluationOptions,
    voice_options: VoiceOptions,
    models: dict[str, LoadedCheckpoint],
    precision: Precision,
    *,
    needs_words: bool,
) -> tuple[list[EvaluationItem], dict[str, Any]]:
    """What a voice is to speak, and what its `Evaluator` takes."""
    voice = make_voice(models["generator"], models.get("vocoder"), voice_options, precision=precision)
    seed = None if voice_options.front_end.p_arpabet is None else options.seed
    speaker = voice_options.speaking.speaker
    items = read_items(args.list, voice, options, speaker=speaker, seed=seed, needs_words=needs_words)
    griffin_lim = replace(voice, vocoder=GriffinLimVocoder(voice.audio, seed=options.seed), vocoder_pitch="mel")
    beside = partial(speak, griffin_lim) if "vocoder" in models else None
    return items, {"synthesize": partial(speak, voice), "griffin_lim": beside, "audio": voice.audio, "copies": False}


def prepare_copies(
    args: argparse.Namespace,
    options: EvaluationOptions,
    voice_options: VoiceOptions,
    models: dict[str, LoadedCheckpoint],
    precision: Precision,
) -> tuple[list[EvaluationItem], dict[str, Any]]:
    """The recordings to copy, and what the `Evaluator` of their copies takes."""
    opened, accepted = models.get("vocoder"), voice_options.speaking.accept_audio_differences
    contract = None if opened is None else contract_of(opened, None, accepted=accepted)
    inference = None if opened is None or opened.exported is not None else opened.spec.inference
    takes_pitch = isinstance(inference, VocoderSpec) and inference.takes_pitch
    items, audio = read_copies(args.list, options, contract=contract, takes_pitch=takes_pitch)
    vocoder = make_vocoder(opened, voice_options, audio=audio, precision=precision)
    beside = opened and partial(copy, GriffinLimVocoder(audio, seed=options.seed), precision.device)
    synthesize = partial(copy, vocoder, precision.device)
    return items, {"synthesize": synthesize, "griffin_lim": beside, "audio": audio, "copies": True}


def facts_and_settings(
    args: argparse.Namespace, models: dict[str, LoadedCheckpoint]
) -> tuple[dict[str, str], dict[str, Any]]:
    """What the page and the JSON say of the run, and all that its results depend on besides the list, plain types."""
    named = {one.spec.option if role == "recognizer" else role: one for role, one in models.items()}
    facts = {role: str(getattr(args, role)) for role in ("generator", "vocoder", "list") if getattr(args, role)}
    facts |= {name: str(one.path) for name, one in named.items() if name not in facts}
    facts |= {
        "precision": read_options(args, ComputingOptions).precision().name,
        "threads": str(torch.get_num_threads()),
    }
    left_out = _NOT_SETTINGS | {spec.option for spec in models_with("recognizer")}
    values = {name: str(value) if isinstance(value, Path) else value for name, value in vars(args).items()}
    settings = {
        "sha256": {name: sha256(one.path) for name, one in named.items()},
        "packages": sorted(installed()),
        "options": {name: value for name, value in values.items() if name not in left_out},
    }
    return facts, settings


def main(argv: Sequence[str] | None = None) -> int:
    """Evaluate; every mistake in the options, the list and the checkpoints shows before the first phrase is spoken."""
    args, models, read = open_models(argv)
    options = read_options(args, EvaluationOptions)
    precision = read_options(args, ComputingOptions).precision()
    precision.prepare_process()
    can_recognize = "recognizer" in models or "pocketsphinx" in installed()
    specs = {role: one.spec for role, one in models.items() if role != "recognizer"}
    voice_options = read_voice_options(args, specs)
    if args.generator is None:
        items, prepared = prepare_copies(args, options, voice_options, models, precision)
    else:
        items, prepared = prepare_voice(args, options, voice_options, models, precision, needs_words=can_recognize)
    read += [("VOCODER", Path(args.vocoder))] if "vocoder" in models else []
    check_files(options.output, items, dataset_path=options.dataset_path, read=read)
    recognizer: Recognizer | Pocketsphinx | None = None
    has_words = any(item.words is not None for item in items)
    if "recognizer" in models:
        recognizer = load_recognizer(models["recognizer"], precision=precision)
    elif can_recognize and has_words:
        recognizer = Pocketsphinx.load()
    audio = prepared["audio"]
    evaluator = Evaluator(
        folder=options.output,
        synthesize=prepared["synthesize"],
        griffin_lim=prepared["griffin_lim"],
        sampling_rate=audio.sampling_rate,
        recognizer=recognizer,
        extractor=MelExtractor(audio) if prepared["copies"] else None,
    )
    note_missing([*evaluator.measures, *["pocketsphinx"] * (recognizer is None and has_words)])
    facts, settings = facts_and_settings(args, models)
    return run_evaluation(items, evaluator, settings=settings, facts=facts, fresh=options.fresh)


if __name__ == "__main__":
    run(main)
