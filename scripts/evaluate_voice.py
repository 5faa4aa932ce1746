"""Evaluates a voice: speaks a list, and measures of each utterance error rates, distance from a recording, and speed.

    python -m scripts.evaluate_voice FastPitch.pt HiFi-GAN.pt phrases/devset10.tsv --jasper Jasper.pt

GENERATOR is a text-to-mel checkpoint, VOCODER a mel-to-sound checkpoint or the word griffin-lim. A run that was stopped
is resumed when it is started again.
"""

from collections.abc import Sequence
from pathlib import Path

from common.cli import given_options, precision_from_args, run
from common.evaluation.arguments import build_parser, facts_and_settings, open_models
from common.evaluation.evaluator import Evaluator, check_files, run_evaluation
from common.evaluation.items import read_items
from common.recognition import load_recognizer
from common.synthesis import GriffinLimVocoder, Vocoder, load_vocoder, load_voice
from common.synthesis.arguments import parse_model_options
from common.synthesis.effects import check_effects


def main(argv: Sequence[str] | None = None) -> int:
    """Evaluate; every mistake in the options, the list and the checkpoints shows before the first phrase is spoken."""
    parser = build_parser()
    args = parser.parse_args(argv)
    precision = precision_from_args(args)
    models = open_models(args, parser)
    precision.prepare_process()
    generator = models["generator"]
    options = {role: parse_model_options(args, one.spec) for role, one in models.items() if role != "recognizer"}
    vocoder: Vocoder = GriffinLimVocoder(generator.checkpoint.audio, seed=args.seed, n_iter=args.griffin_lim_iters)
    if "vocoder" in models:
        vocoder = load_vocoder(
            models["vocoder"],
            options["vocoder"],
            precision=precision,
            seed=args.seed,
            denoising_strength=args.denoising_strength,
        )
    voice = load_voice(
        generator,
        vocoder,
        precision=precision,
        options=options["generator"],
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
        needs_words="recognizer" in models,
    )
    inputs = [one for item in items for one in item.inputs]
    check_effects(given_options(args, parser), inputs, voice.controls, source=str(args.list))
    read = [*parser.files_of(args)[1], *([("VOCODER", Path(args.vocoder))] if "vocoder" in models else [])]
    check_files(args.output, items, dataset_path=args.dataset_path, read=read)
    recognizer = load_recognizer(models["recognizer"], precision=precision) if "recognizer" in models else None
    evaluator = Evaluator(voice, args.output, recognizer=recognizer)
    facts, settings = facts_and_settings(args, models)
    return run_evaluation(items, evaluator, settings=settings, facts=facts, fresh=args.fresh)


if __name__ == "__main__":
    run(main)
