"""The command line of ``serve.py``: models and their options."""

import argparse
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from common.checkpoints.command_line import (
    add_checkpoint_options,
    models_with,
    named_models,
    open_named_checkpoints,
    parse_options,
)
from common.cli import ArgumentParser, ComputingOptions
from common.errors import OptionError
from common.options import add_options
from common.registry import ModelSpec
from common.serving.options import ServerOptions
from common.synthesis.options import add_voice_options, parse_voice

if TYPE_CHECKING:
    from common.serving.models import ServedModels

_PURPOSES = {
    "generator": "; to speak with",
    "vocoder": "; default: the one in voices/, or Griffin-Lim",
    "recognizer": "; to transcribe with",
}


def build_parser(models: Sequence[ModelSpec] | None = None, without: Collection[str] = ()) -> ArgumentParser:
    """Return the parser of ``serve.py`` for ``models``, by default all that speak, minus the fields ``without``."""
    models = models_with("generator", "vocoder") if models is None else models
    parser = ArgumentParser(
        description="Serve a voice, and optionally a recognizer, over HTTP with OpenAI's API, and the studio at /",
        prog="serve.py",
        epilog="Exit status: 0 stopped by SIGTERM, SIGHUP or Ctrl-C, after finishing speech in progress; 1 bad input; "
        "2 wrong options.",
    )
    add_options(parser, ServerOptions)
    add_checkpoint_options(parser, _PURPOSES)
    add_options(parser.add_argument_group("computing"), ComputingOptions)
    add_voice_options(parser, models, without=without)
    return parser


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse a command line with the options of the models that it names."""
    named = named_models(argv, "generator", "vocoder")
    return parse_options(argv, build_parser(named), named)


def load_models(argv: Sequence[str] | None) -> "ServedModels":
    """Load the models that a command line names; raises InputError or OptionError."""
    from common.checkpoints.checkpoint import voice_name  # --help needs no PyTorch
    from common.recognition.recognizer import load_recognizer
    from common.serving.models import ServedModels
    from common.synthesis.loading import GRIFFIN_LIM, make_voice, with_shipped

    args = parse_args(argv)
    opened = open_named_checkpoints(args, *_PURPOSES)
    recognizer = opened.pop("recognizer", None)
    opened = with_shipped(opened, with_vocoder=args.griffin_lim_iters is None)
    generator = opened["generator"]
    if "vocoder" not in opened and not generator.spec.makes_wave:
        print(GRIFFIN_LIM)
    given = parse_voice(argv, build_parser, opened)
    voice = make_voice(generator, opened.get("vocoder"), given.voice, precision=given.precision)
    name, recognizer_name = voice_name(generator.path), recognizer.path.stem if recognizer else ""
    names = [*filter(None, (name, recognizer_name)), *voice.speakers]
    aliases = ({generator.path.stem: name} if generator.path.stem != name else {}) | dict(args.alias)
    for alias, meant in aliases.items():
        if meant not in names:
            raise OptionError(f"--alias {alias}={meant}: expected one of {', '.join(names)} after the =")
    return ServedModels(
        voice=voice,
        voice_name=name,
        recognizer=load_recognizer(recognizer, precision=given.precision) if recognizer else None,
        recognizer_name=recognizer_name,
        aliases=aliases,
    )
