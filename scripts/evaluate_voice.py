"""Evaluates a voice or a vocoder: speaks a list, and measures error rates, distances and speed of each utterance."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from common.checkpoints.command_line import check_ema, models_with, open_named_checkpoints, parse_options
from common.cli import ArgumentParser, ComputingOptions, names_given
from common.errors import OptionError
from common.evaluation.options import GRIFFIN_LIM, RESULTS, EvaluationOptions
from common.options import add_options, read_options
from common.registry import ModelSpec, available_models
from common.synthesis.options import add_voice_options, parse_voice

if TYPE_CHECKING:
    from common.checkpoints.loading import LoadedCheckpoint


def build_parser(
    models: Sequence[ModelSpec] | None = None, without: Collection[str] = (), *, reads_results: bool = False
) -> ArgumentParser:
    """Return the parser for ``models``, by default all that speak, without the fields ``without``."""
    parser = ArgumentParser(
        prog="evaluate_voice.sh",
        description="Speak a list, or copy its recordings, and measure errors, distance from recordings, and speed",
        epilog="Exit status: 0 all evaluated; 1 bad input, or some utterances could not be evaluated (the report says "
        "which); 2 wrong options; 128 + a signal's number if one stopped the run.",
    )
    models = models_with("generator", "vocoder") if models is None else models
    nargs = "?" if reads_results else None
    generators, vocoders = (" or ".join(available_models(role)) for role in ("generator", "vocoder"))
    text = f"text-to-mel checkpoint: {generators}; without it the vocoder copies the list's recordings"
    parser.add_argument("generator", type=Path, nargs="?", help=text)
    parser.add_argument("vocoder", nargs=nargs, help=f"{GRIFFIN_LIM}, or a mel-to-sound checkpoint: {vocoders}")
    text = "phrases, as for inference.py; a column wav names the recording of each"
    parser.add_argument("list", type=Path, nargs=nargs, help=text)
    add_options(parser, EvaluationOptions)
    for spec in models_with("recognizer"):
        parser.add_argument(f"--{spec.option}", type=Path, help="recognizer for WER and CER, in place of Whisper")
    add_voice_options(parser, models, without={"acceleration", "fade_out", *without})
    add_options(parser.add_argument_group("computing"), ComputingOptions)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Evaluate; mistakes in options, list and checkpoints are reported before the first phrase is spoken."""
    parser = build_parser(reads_results="--results" in names_given(argv))
    args = parse_options(argv, parser, models_with("generator", "vocoder"), intermixed=True)
    options = read_options(args, EvaluationOptions)
    if options.results is not None:
        from common.evaluation.listening import report_results

        return report_results(args.output, options.results)
    from common.checkpoints.loading import open_checkpoint  # --help needs no PyTorch

    speaking = {}
    if args.generator is not None:
        speaking["generator"] = open_checkpoint(args.generator, role="generator", ema=args.ema)
    if args.vocoder != GRIFFIN_LIM:
        speaking["vocoder"] = open_checkpoint(Path(args.vocoder), role="vocoder", ema=args.ema)
    voices, systems = {args.output: speaking}, {_name_of(speaking): args.output}  # checkpoints and folders
    for path in options.against:
        name, output = str(path), path
        if path.is_file():
            one = open_checkpoint(path, role=None, ema=args.ema)
            if one.spec.role not in ("vocoder", *speaking):
                raise OptionError(f"--against {path}: of {one.spec.name}, expected a {' or '.join(speaking)}")
            output = args.output / "against" / "_".join(path.parts).strip("/_")
            voices[output] = {**speaking, one.spec.role: one}
            name = _name_of(voices[output])
        elif not path.is_dir():
            raise OptionError(f"--against {path}: no such checkpoint or folder")
        elif options.listening is None and not (path / RESULTS).is_file():
            raise OptionError(f"--against {path}: no evaluation, expected {RESULTS} in it, or --listening to listen")
        if name in systems:
            raise OptionError(f"--against {path}: a system is given twice; give each one once")
        systems[name] = output
    status = 0
    for output, models in voices.items():
        if len(voices) > 1:
            print(_name_of(models))
        status = _evaluate(argv, models, output) or status
        if status > 1:  # stopped by a signal
            return status
    from common.evaluation.command import print_differences
    from common.evaluation.listening import write_listening_test

    if options.listening is not None:
        write_listening_test(args.output, options.listening, systems)
    elif len(systems) > 1:
        print_differences(systems)
    return status


def _evaluate(argv: Sequence[str] | None, speaking: "Mapping[str, LoadedCheckpoint]", output: Path) -> int:
    """Evaluate checkpoints by role, with their own options, into ``output``; return the exit status."""
    from common.evaluation import command

    def parser_of(models: Sequence[ModelSpec], without: Collection[str]) -> ArgumentParser:
        return build_parser(models, set(without) - {"ema"})  # which a recognizer has, too

    given = parse_voice(argv, parser_of, speaking, intermixed=True)
    args = given.args
    for role, one in speaking.items():
        setattr(args, role, one.path)
    models = dict(speaking) | open_named_checkpoints(args, "recognizer")
    if args.ema and models:
        check_ema(list(models.values()))
    options = replace(read_options(args, EvaluationOptions), output=output)
    return command.evaluate(args.list, options, given.voice, models, precision=given.precision, parameters=vars(args))


def _name_of(models: "Mapping[str, LoadedCheckpoint]") -> str:
    """Return the name of a voice or vocoder in the results: its checkpoints."""
    paths = [str(one.path) for one in models.values()]
    return " through ".join(paths if "vocoder" in models else [*paths, GRIFFIN_LIM])
