"""Evaluates a voice or a vocoder: speaks a list, and measures of each utterance error rates, distances, and speed.

    python -m scripts.evaluate_voice FastPitch.pt HiFi-GAN.pt phrases/devset10.tsv --jasper Jasper.pt
    python -m scripts.evaluate_voice HiFi-GAN.pt copy.tsv

GENERATOR is a text-to-mel checkpoint, VOCODER a mel-to-sound checkpoint or the word griffin-lim; without GENERATOR the
list's recordings are copied. A run that was stopped is resumed when it is started again.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

from common.checkpoints.command_line import check_ema, models_with, open_named_checkpoints, parse_options
from common.cli import ArgumentParser, ComputingOptions, run
from common.evaluation.options import GRIFFIN_LIM, EvaluationOptions
from common.options import add_options, read_options
from common.registry import ModelSpec, available_models
from common.synthesis.options import add_voice_options, read_voice_options, unsupported_options


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
    add_voice_options(parser, models, without={"acceleration", "fade_out", *without})
    add_options(parser.add_argument_group("computing"), ComputingOptions)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Evaluate; every mistake in the options, the list and the checkpoints shows before the first phrase is spoken."""
    every = models_with("generator", "vocoder")
    args = parse_options(argv, build_parser(every), every, intermixed=True)  # as the first word may be left out
    from common.checkpoints import open_checkpoint  # --help needs no PyTorch
    from common.evaluation import command

    speaking = {}
    if args.generator is not None:
        speaking["generator"] = open_checkpoint(args.generator, role="generator", ema=args.ema)
    if args.vocoder != GRIFFIN_LIM:
        speaking["vocoder"] = open_checkpoint(Path(args.vocoder), role="vocoder", ema=args.ema)
    specs = {role: one.spec for role, one in speaking.items()}
    parser = build_parser(list(specs.values()), unsupported_options(specs) - {"ema"})  # a recognizer has it, too
    args = parse_options(argv, parser, list(specs.values()), intermixed=True)
    models = speaking | open_named_checkpoints(args, "recognizer")
    if args.ema and models:
        check_ema(list(models.values()))
    options, (voice, precision) = read_options(args, EvaluationOptions), read_voice_options(args, specs)
    return command.evaluate(args.list, options, voice, models, precision=precision, parameters=vars(args))


if __name__ == "__main__":
    run(main)
