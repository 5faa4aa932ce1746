"""Evaluates a voice or a vocoder: speaks a list, and measures of each utterance error rates, distances, and speed.

    python -m scripts.evaluate_voice FastPitch.pt HiFi-GAN.pt phrases/devset10.tsv --jasper Jasper.pt
    python -m scripts.evaluate_voice HiFi-GAN.pt copy.tsv

GENERATOR is a text-to-mel checkpoint, VOCODER a mel-to-sound checkpoint or the word griffin-lim; without GENERATOR the
list's recordings are copied. A run that was stopped is resumed when it is started again.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from common.checkpoints import LoadedCheckpoint
from common.cli import ArgumentParser, given_options, precision_from_args, run
from common.config import AudioConfig
from common.evaluation.arguments import build_parser, facts_and_settings, open_models
from common.evaluation.copies import CopyEvaluator, read_copies
from common.evaluation.evaluator import AnyEvaluator, AnyRecognizer, Evaluator, check_files, run_evaluation
from common.evaluation.items import EvaluationItem, read_items
from common.evaluation.packages import Pocketsphinx, installed, note_missing
from common.precision import Precision
from common.recognition import load_recognizer
from common.synthesis import GriffinLimVocoder, Vocoder, contract_of, load_vocoder, load_voice
from common.synthesis.arguments import parse_model_options
from common.synthesis.effects import check_effects


def main(argv: Sequence[str] | None = None) -> int:
    """Evaluate; every mistake in the options, the list and the checkpoints shows before the first phrase is spoken."""
    parser = build_parser()
    args = parser.parse_intermixed_args(argv)  # as the first of the words may be left out
    precision = precision_from_args(args)
    models = open_models(args, parser)
    precision.prepare_process()
    prepare = prepare_copies if args.generator is None else prepare_voice
    items, evaluate = prepare(args, parser, models, precision)
    read = [*parser.files_of(args)[1], *([("VOCODER", Path(args.vocoder))] if "vocoder" in models else [])]
    check_files(args.output, items, dataset_path=args.dataset_path, read=read)
    recognizer: AnyRecognizer | None = None
    if "recognizer" in models:
        recognizer = load_recognizer(models["recognizer"], precision=precision)
    elif "pocketsphinx" in installed() and any(item.words is not None for item in items):
        recognizer = Pocketsphinx.load()
    evaluator = evaluate(args.output, recognizer=recognizer)
    note_missing(evaluator.measures, words=recognizer is None and any(item.words is not None for item in items))
    facts, settings = facts_and_settings(args, models)
    return run_evaluation(items, evaluator, settings=settings, facts=facts, fresh=args.fresh)


def prepare_voice(
    args: argparse.Namespace, parser: ArgumentParser, models: dict[str, LoadedCheckpoint], precision: Precision
) -> tuple[list[EvaluationItem], Callable[..., AnyEvaluator]]:
    """What a voice is to speak, and what makes the evaluator of a folder and a recognizer."""
    generator = models["generator"]
    voice = load_voice(
        generator,
        load_sound(args, models, generator.checkpoint.audio, precision),
        precision=precision,
        options=parse_model_options(args, generator.spec),
        seed=args.seed,
        unknown_symbols=args.unknown_symbols,
        lexicon=args.lexicon,
    )
    items = read_items(
        args.list,
        voice,
        dataset_path=args.dataset_path,
        recordings=args.recordings,
        transcripts=args.transcripts,
        reader=args.reader,
        speaker=args.speaker,
        seed=None if args.p_arpabet is None else args.seed,
        needs_words=has_recognizer(models),
    )
    inputs = [one for item in items for one in item.inputs]
    check_effects(given_options(args, parser), inputs, voice.controls, source=str(args.list))
    beside = None
    if "vocoder" in models:
        griffin_lim = GriffinLimVocoder(voice.audio, seed=args.seed, n_iter=args.griffin_lim_iters)
        beside = replace(voice, vocoder=griffin_lim, vocoder_pitch="mel")
    return items, partial(Evaluator, voice, beside=beside)


def prepare_copies(
    args: argparse.Namespace, parser: ArgumentParser, models: dict[str, LoadedCheckpoint], precision: Precision
) -> tuple[list[EvaluationItem], Callable[..., AnyEvaluator]]:
    """The recordings to copy, and what makes an evaluator of a vocoder's copies, beside Griffin-Lim's."""
    opened = models.get("vocoder")
    items, audio = read_copies(
        args.list,
        dataset_path=args.dataset_path,
        recordings=args.recordings,
        transcripts=args.transcripts,
        contract=opened and contract_of(opened, None, accepted=args.accept_audio_differences),
        takes_pitch=opened is not None and opened.exported is None and opened.spec.inference.takes_pitch,
        needs_words=has_recognizer(models),
    )
    beside = opened and GriffinLimVocoder(audio, seed=args.seed, n_iter=args.griffin_lim_iters)
    vocoder = load_sound(args, models, audio, precision)
    return items, partial(CopyEvaluator, vocoder, beside=beside, device=precision.device)


def has_recognizer(models: dict[str, LoadedCheckpoint]) -> bool:
    """Whether words can be recognized: by a checkpoint, or by pocketsphinx."""
    return "recognizer" in models or "pocketsphinx" in installed()


def load_sound(
    args: argparse.Namespace, models: dict[str, LoadedCheckpoint], audio: AudioConfig, precision: Precision
) -> Vocoder:
    """The vocoder of ``models``, as the options say, or Griffin-Lim."""
    if (opened := models.get("vocoder")) is None:
        return GriffinLimVocoder(audio, seed=args.seed, n_iter=args.griffin_lim_iters)
    options, strength = parse_model_options(args, opened.spec), args.denoising_strength
    return load_vocoder(opened, options, precision=precision, seed=args.seed, denoising_strength=strength)


if __name__ == "__main__":
    run(main)
