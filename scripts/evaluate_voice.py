"""Evaluates a voice or a vocoder: speaks a list, and measures of each utterance error rates, distances, and speed.

    python -m scripts.evaluate_voice FastPitch.pt HiFi-GAN.pt phrases/devset10.tsv --jasper Jasper.pt
    python -m scripts.evaluate_voice HiFi-GAN.pt copy.tsv

GENERATOR is a text-to-mel checkpoint, VOCODER a mel-to-sound checkpoint or the word griffin-lim; without GENERATOR the
list's recordings are copied. A run that was stopped is resumed when it is started again.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from common.audio import MelExtractor
from common.checkpoints import LoadedCheckpoint, open_checkpoint
from common.cli import ArgumentParser, add_precision_arguments, given_options, precision_from_args, run
from common.config import AudioConfig
from common.evaluation.evaluator import Evaluator, copy, speak
from common.evaluation.items import EvaluationItem, read_copies, read_items
from common.evaluation.options import EvaluationOptions
from common.evaluation.packages import Pocketsphinx, installed, note_missing
from common.evaluation.results import GRIFFIN_LIM
from common.evaluation.run import check_files, run_evaluation
from common.files import sha256
from common.options import add_options, read_options
from common.precision import Precision
from common.recognition import Recognizer, load_recognizer
from common.registry import VocoderSpec, available_models
from common.synthesis import GriffinLimVocoder, Vocoder, check_ema, contract_of, load_vocoder, load_voice
from common.synthesis.arguments import (
    add_speaking_arguments,
    check_roles,
    parse_model_options,
    specs_of,
    with_text_options,
)
from common.synthesis.effects import check_effects

# Options that the results do not depend on, or whose files they depend on.
_NOT_SETTINGS = set(
    "generator vocoder list output fresh recordings transcripts dataset_path model_destinations".split()
)


def build_parser() -> ArgumentParser:
    """The options; ``--<option of a recognizer>`` takes its checkpoint."""
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
    for spec in specs_of("recognizer"):
        text = "recognizer for WER and CER; pocketsphinx if not given"
        parser.add_argument(f"--{spec.option}", type=Path, help=text)
    add_speaking_arguments(parser, parser.add_argument_group("speaking"))
    add_precision_arguments(parser.add_argument_group("computing"))
    return parser


def open_models(args: argparse.Namespace, parser: argparse.ArgumentParser) -> dict[str, LoadedCheckpoint]:
    """The checkpoints by role, which must fit each other and the options; what is not given is absent.

    Raises:
        CheckpointError: one cannot be read, or is of a model that does another job.
        InputError: generator and vocoder are of different mel-spectrograms.
        OptionError: an option is about another model.
    """
    models = {}
    if args.generator is not None:
        models["generator"] = with_text_options(open_checkpoint(args.generator, role="generator", ema=args.ema), args)
    if args.vocoder != GRIFFIN_LIM:
        models["vocoder"] = open_checkpoint(Path(args.vocoder), role="vocoder", ema=args.ema)
    for spec in specs_of("recognizer"):
        if path := getattr(args, spec.option):
            models["recognizer"] = open_checkpoint(path, model=spec.name, ema=args.ema)
    if args.ema and models:
        check_ema(list(models.values()))
    specs = {role: models[role].spec if role in models else None for role in ("generator", "vocoder")}
    check_roles(args, parser, **specs)
    if "vocoder" in models and "generator" in models:
        contract_of(models["vocoder"], models["generator"], accepted=args.accept_audio_differences)
    return models


def prepare_voice(
    args: argparse.Namespace,
    options: EvaluationOptions,
    models: dict[str, LoadedCheckpoint],
    precision: Precision,
    *,
    given: Sequence[str],
    needs_words: bool,
) -> tuple[list[EvaluationItem], dict[str, Any]]:
    """What a voice is to speak, and what its `Evaluator` takes."""
    generator = models["generator"]
    audio = generator.checkpoint.audio
    voice = load_voice(
        generator,
        load_sound(args, models, audio, precision),
        precision=precision,
        options=parse_model_options(args, generator.spec),
        seed=options.seed,
        unknown_symbols=args.unknown_symbols,
        lexicon=args.lexicon,
    )
    seed = None if args.p_arpabet is None else options.seed
    items = read_items(args.list, voice, options, speaker=args.speaker, seed=seed, needs_words=needs_words)
    inputs = [one for item in items for one in item.inputs]
    check_effects(given, inputs, voice.controls, source=str(args.list))
    griffin_lim = replace(voice, vocoder=load_sound(args, {}, audio, precision), vocoder_pitch="mel")
    beside = partial(speak, griffin_lim) if "vocoder" in models else None
    return items, {"synthesize": partial(speak, voice), "griffin_lim": beside, "audio": audio, "copies": False}


def prepare_copies(
    args: argparse.Namespace, options: EvaluationOptions, models: dict[str, LoadedCheckpoint], precision: Precision
) -> tuple[list[EvaluationItem], dict[str, Any]]:
    """The recordings to copy, and what the `Evaluator` of their copies takes."""
    opened = models.get("vocoder")
    contract = None if opened is None else contract_of(opened, None, accepted=args.accept_audio_differences)
    inference = None if opened is None or opened.exported is not None else opened.spec.inference
    takes_pitch = isinstance(inference, VocoderSpec) and inference.takes_pitch
    items, audio = read_copies(args.list, options, contract=contract, takes_pitch=takes_pitch)
    synthesize = partial(copy, load_sound(args, models, audio, precision), precision.device)
    beside = opened and partial(copy, load_sound(args, {}, audio, precision), precision.device)
    return items, {"synthesize": synthesize, "griffin_lim": beside, "audio": audio, "copies": True}


def load_sound(
    args: argparse.Namespace, models: dict[str, LoadedCheckpoint], audio: AudioConfig, precision: Precision
) -> Vocoder:
    """The vocoder of ``models``, as the options say, or Griffin-Lim."""
    if (opened := models.get("vocoder")) is None:
        return GriffinLimVocoder(audio, seed=args.seed, n_iter=args.griffin_lim_iters)
    options, strength = parse_model_options(args, opened.spec), args.denoising_strength
    return load_vocoder(opened, options, precision=precision, seed=args.seed, denoising_strength=strength)


def facts_and_settings(
    args: argparse.Namespace, models: dict[str, LoadedCheckpoint]
) -> tuple[dict[str, str], dict[str, Any]]:
    """What the page and the JSON say of the run, and all that its results depend on besides the list, plain types."""
    named = {one.spec.option if role == "recognizer" else role: one for role, one in models.items()}
    facts = {role: str(getattr(args, role)) for role in ("generator", "vocoder", "list") if getattr(args, role)}
    facts |= {name: str(one.path) for name, one in named.items() if name not in facts}
    facts |= {"precision": precision_from_args(args).name, "threads": str(torch.get_num_threads())}
    left_out = _NOT_SETTINGS | {spec.option for spec in specs_of("recognizer")}
    values = {name: str(value) if isinstance(value, Path) else value for name, value in vars(args).items()}
    settings = {
        "sha256": {name: sha256(one.path) for name, one in named.items()},
        "packages": sorted(installed()),
        "options": {name: value for name, value in values.items() if name not in left_out},
    }
    return facts, settings


def main(argv: Sequence[str] | None = None) -> int:
    """Evaluate; every mistake in the options, the list and the checkpoints shows before the first phrase is spoken."""
    parser = build_parser()
    args = parser.parse_intermixed_args(argv)  # as the first of the words may be left out
    options = read_options(args, EvaluationOptions)
    precision = precision_from_args(args)
    models = open_models(args, parser)
    precision.prepare_process()
    can_recognize = "recognizer" in models or "pocketsphinx" in installed()
    if args.generator is None:
        items, prepared = prepare_copies(args, options, models, precision)
    else:
        given = given_options(args, parser)
        items, prepared = prepare_voice(args, options, models, precision, given=given, needs_words=can_recognize)
    read = [*parser.files_of(args)[1], *([("VOCODER", Path(args.vocoder))] if "vocoder" in models else [])]
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
