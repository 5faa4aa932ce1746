"""Evaluates a voice: speaks a list, and measures of each utterance error rates, distance from a recording, and speed.

    python -m scripts.evaluate_voice FastPitch.pt HiFi-GAN.pt phrases/devset10.tsv --jasper Jasper.pt

GENERATOR is a text-to-mel checkpoint, VOCODER a mel-to-sound checkpoint or the word griffin-lim. A run that was stopped
is resumed when it is started again.
"""

from collections.abc import Sequence
from dataclasses import replace

from common.cli import precision_from_args, run
from common.evaluation.arguments import build_parser, facts_of, list_options, open_models, settings_of
from common.evaluation.evaluator import Evaluator, run_evaluation
from common.evaluation.items import read_items
from common.evaluation.results import EvaluationFolder
from common.recognition.recognizer import load_recognizer
from common.synthesis.arguments import parse_model_options
from common.synthesis.synthesizer import Synthesizer
from common.synthesis.vocoder import GriffinLimVocoder, Vocoder
from common.synthesis.voice import load_vocoder, load_voice


def main(argv: Sequence[str] | None = None) -> int:
    """Evaluate; every mistake in the options, the list and the checkpoints shows before the first phrase is spoken."""
    parser = build_parser()
    args = parser.parse_args(argv)
    precision = precision_from_args(args)
    models = open_models(args, parser)
    precision.prepare_process()
    generator, recognizer = models.generator, None
    options = parse_model_options(args, generator.spec)
    voice = load_voice(generator, options, precision=precision, unknown_symbols=args.unknown_symbols)
    items = read_items(list_options(args, models), voice)
    vocoder: Vocoder = GriffinLimVocoder(voice.audio, seed=args.seed, n_iter=args.griffin_lim_iters)
    if models.vocoder is not None:
        options = parse_model_options(args, models.vocoder.spec)
        strength = args.denoising_strength
        vocoder = load_vocoder(
            models.vocoder, options, precision=precision, seed=args.seed, denoising_strength=strength
        )
    if models.recognizer is not None:
        recognizer = load_recognizer(models.recognizer, precision=precision)
    synthesizer = Synthesizer(
        generator=voice.network,
        vocoder=vocoder,
        controls=replace(voice.controls, seed=args.seed),
        audio=voice.audio,
        device=precision.device,
        autocast=precision.autocast,
    )
    evaluator = Evaluator(synthesizer, voice.audio, EvaluationFolder(args.output), recognizer=recognizer)
    return run_evaluation(
        items, evaluator, settings=settings_of(args, models), facts=facts_of(args, models), fresh=args.fresh
    )


if __name__ == "__main__":
    run(main)
