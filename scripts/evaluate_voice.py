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
from common.cli import precision_from_args, run
from common.evaluation.arguments import facts_and_settings, parse_and_open, voice_options
from common.evaluation.copies import CopyEvaluator, read_copies
from common.evaluation.evaluator import AnyEvaluator, AnyRecognizer, Evaluator, check_files, run_evaluation
from common.evaluation.items import EvaluationItem, read_items
from common.evaluation.packages import Pocketsphinx, installed, note_missing
from common.precision import Precision
from common.recognition import load_recognizer
from common.synthesis import GriffinLimVocoder, contract_of
from common.synthesis.loading import make_vocoder, make_voice
from common.synthesis.options import VoiceOptions


def main(argv: Sequence[str] | None = None) -> int:
    """Evaluate; every mistake in the options, the list and the checkpoints shows before the first phrase is spoken."""
    args, models, read = parse_and_open(argv)
    precision = precision_from_args(args)
    precision.prepare_process()
    prepare = prepare_copies if args.generator is None else prepare_voice
    items, evaluate = prepare(args, voice_options(args, models), models, precision)
    read += [("VOCODER", Path(args.vocoder))] if "vocoder" in models else []
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
    args: argparse.Namespace, options: VoiceOptions, models: dict[str, LoadedCheckpoint], precision: Precision
) -> tuple[list[EvaluationItem], Callable[..., AnyEvaluator]]:
    """What a voice is to speak, and what makes the evaluator of a folder and a recognizer."""
    generator, vocoder = models["generator"], models.get("vocoder")
    voice = make_voice(generator, vocoder, options, precision=precision)
    items = read_items(
        args.list,
        voice,
        dataset_path=args.dataset_path,
        recordings=args.recordings,
        transcripts=args.transcripts,
        reader=args.reader,
        speaker=options.speaking.speaker,
        seed=None if options.front_end.p_arpabet is None else options.speaking.seed,
        needs_words=has_recognizer(models),
    )
    beside = None
    if vocoder is not None:
        griffin_lim = GriffinLimVocoder(voice.audio, seed=options.speaking.seed)
        beside = replace(voice, vocoder=griffin_lim, vocoder_pitch="mel")
    return items, partial(Evaluator, voice, beside=beside)


def prepare_copies(
    args: argparse.Namespace, options: VoiceOptions, models: dict[str, LoadedCheckpoint], precision: Precision
) -> tuple[list[EvaluationItem], Callable[..., AnyEvaluator]]:
    """The recordings to copy, and what makes an evaluator of a vocoder's copies, beside Griffin-Lim's."""
    opened = models.get("vocoder")
    items, audio = read_copies(
        args.list,
        dataset_path=args.dataset_path,
        recordings=args.recordings,
        transcripts=args.transcripts,
        contract=opened and contract_of(opened, None, accepted=options.speaking.accept_audio_differences),
        takes_pitch=opened is not None and opened.exported is None and opened.spec.inference.takes_pitch,
        needs_words=has_recognizer(models),
    )
    beside = opened and GriffinLimVocoder(audio, seed=options.speaking.seed)
    vocoder = make_vocoder(opened, options, audio=audio, precision=precision)
    return items, partial(CopyEvaluator, vocoder, beside=beside, device=precision.device)


def has_recognizer(models: dict[str, LoadedCheckpoint]) -> bool:
    """Whether words can be recognized: by a checkpoint, or by pocketsphinx."""
    return "recognizer" in models or "pocketsphinx" in installed()


if __name__ == "__main__":
    run(main)
