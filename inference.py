"""Speaks a text or a list of phrases; or, given a recognizer, transcribes recordings."""

import os
import sys
from collections.abc import Collection, Sequence
from contextlib import ExitStack, redirect_stdout
from pathlib import Path

from common.checkpoints.command_line import (
    add_checkpoint_options,
    architecture_answers,
    models_with,
    named_models,
    open_named_checkpoints,
    parse_options,
)
from common.cli import MEASURING, ArgumentParser, ComputingOptions, names_given, run
from common.options import add_options, read_options
from common.recognition.options import REMOVED as REMOVED_OF_RECOGNITION, TranscribingOptions
from common.registry import ModelSpec
from common.synthesis.options import REMOVED, SHORT_TEXT, STANDARD, CommandOptions, add_voice_options, parse_voice

_PURPOSES = {
    "generator": ", to speak text; without it, the list's mel or wav column becomes sound",
    "vocoder": "; default: the one in voices/, or Griffin-Lim",
}


def build_parser(models: Sequence[ModelSpec] | None = None, without: Collection[str] = ()) -> ArgumentParser:
    """Return the parser for speaking with ``models``, by default all, minus the fields ``without``."""
    models = models_with(*_PURPOSES) if models is None else models
    recognizers = ", ".join(f"--{spec.option}" for spec in models_with("recognizer"))
    parser = ArgumentParser(
        description="Speak a text, or a list of phrases",
        prog="inference.py",
        epilog="Exit status: 0 spoken, even if some phrases were cut since the voice didn't end them; 1 bad input, or "
        "every phrase was cut; 2 wrong options; 128 + a signal's number if one stopped the run. "
        f"For speech to text, see {recognizers} CHECKPOINT --help.",
    )
    add_options(parser, CommandOptions, without=without)
    add_checkpoint_options(parser, _PURPOSES)
    add_voice_options(parser, models, without=without)
    add_options(parser, ComputingOptions, title=MEASURING)
    parser.answer_published(architecture_answers(models) | REMOVED)
    return parser


def speak(argv: Sequence[str] | None) -> int:
    """Open the checkpoints, read their models' options only, and speak; returns the exit status."""
    named = named_models(argv, *_PURPOSES)
    args = parse_options(argv, build_parser(named), named)
    options: CommandOptions = read_options(args, CommandOptions)
    with ExitStack() as stack:
        if options.output == STANDARD:
            stack.enter_context(redirect_stdout(sys.stderr))
        if options.quiet:
            stack.enter_context(redirect_stdout(stack.enter_context(Path(os.devnull).open("w"))))
        from common.precision import one_thread  # --help needs no PyTorch
        from common.synthesis import command
        from common.synthesis.loading import with_shipped
        from common.synthesis.phrases import read_phrases

        opened = open_named_checkpoints(args, *_PURPOSES, quiet=options.quiet)
        if not opened and options.text is not None and len(options.text) <= SHORT_TEXT:
            stack.enter_context(one_thread())
        phrases = [] if options.list is None else read_phrases(options.list)
        is_copied = bool(phrases) and (phrases[0].mel is not None or phrases[0].wav is not None)
        if "generator" in opened or not is_copied:
            shipped_sound = not options.no_audio and args.griffin_lim_iters is None
            advice = ", or make a list of recordings to copy: bash scripts/copy_list.sh LJSpeech-1.1 copy.tsv"
            opened = with_shipped(opened, with_vocoder=shipped_sound, advice=advice)
        return command.speak(options, parse_voice(argv, build_parser, opened), opened, phrases)


def named_recognizer(argv: Sequence[str] | None) -> ModelSpec | None:
    """Return the recognizer whose checkpoint a command line names; None if it names none."""
    given = names_given(argv)
    return next((spec for spec in models_with("recognizer") if given & {f"--{spec.option}", "--ckpt"}), None)


def build_recognition_parser(spec: ModelSpec | None = None) -> ArgumentParser:
    """Return the parser for transcribing with a model, by default the first, including the model's own options."""
    spec = spec or models_with("recognizer")[0]
    parser = ArgumentParser(
        description="Transcribe recordings, and count errors if their transcripts are known",
        prog=f"inference.py --{spec.option}",
        epilog="Exit status: 0 transcribed; 1 bad input; 2 wrong options.",
    )
    text = f"checkpoint of {spec.name}"
    parser.add_argument(f"--{spec.option}", "--ckpt", type=Path, required=True, metavar="CHECKPOINT", help=text)
    add_options(parser, TranscribingOptions)
    add_options(parser.add_argument_group(spec.name), spec.arg_parser.InferenceOptions)
    add_options(parser, ComputingOptions, title=MEASURING)
    parser.answer_published(REMOVED_OF_RECOGNITION)
    return parser


def transcribe(argv: Sequence[str] | None, spec: ModelSpec) -> int:
    """Read the options of a recognizer, open its checkpoint, and transcribe; returns the exit status."""
    parser = build_recognition_parser(spec)
    args = parse_options(argv, parser, [spec])
    options: TranscribingOptions = read_options(args, TranscribingOptions)
    own, computing = read_options(args, spec.arg_parser.InferenceOptions), read_options(args, ComputingOptions)
    from common.precision import prepare_computing  # --help needs no PyTorch
    from common.recognition import command

    checkpoint = open_named_checkpoints(args, "recognizer")["recognizer"]
    precision, files = prepare_computing(computing), parser.files_of(args)
    return command.transcribe(checkpoint, options, own, precision=precision, files=files, parameters=vars(args))


def main(argv: Sequence[str] | None = None) -> int:
    """Speak or transcribe; mistakes in options and lists are reported before the first phrase is synthesized."""
    recognizer = named_recognizer(argv)
    return speak(argv) if recognizer is None else transcribe(argv, recognizer)


if __name__ == "__main__":
    run(main, teardown=False)
