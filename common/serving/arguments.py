"""Command-line options of ``serve.py``: models, limits, and where it listens."""

import argparse
import os
from collections.abc import Collection, Sequence
from dataclasses import fields

from common.checkpoints.command_line import (
    add_checkpoint_options,
    models_with,
    named_models,
    open_named_checkpoints,
    parse_options,
)
from common.cli import ArgumentParser, positive_float, positive_int, values_of, whole_number
from common.errors import OptionError
from common.options import add_options, read_options
from common.precision import ComputingOptions
from common.recognition import load_recognizer
from common.registry import ModelSpec
from common.serving.limits import Limits
from common.serving.models import ServedModels, model_name
from common.synthesis import with_shipped
from common.synthesis.arguments import add_voice_options, read_voice_options, unsupported_options
from common.synthesis.loading import make_voice
from common.synthesis.options import VoiceOptions

_PURPOSES = {
    "generator": "; to speak with",
    "vocoder": "; without one: that in voices/, or Griffin-Lim",
    "recognizer": "; to transcribe with",
}
_SPEAKING = ("generator", "vocoder")
KEY_VARIABLE = "SPEECH_API_KEY"
_LIMITS = {
    "max_queue": (positive_int, "requests at once, waiting or in work; one more is refused (503)"),
    "max_characters": (positive_int, "of a text, markup included, or symbols of a prosody table"),
    "max_body": (positive_int, "bytes of a request"),
    "deadline": (positive_float, "seconds from a request's beginning to the end of its answer, which is cut then"),
    "max_audio_seconds": (positive_float, "of a recording to transcribe"),
    "batch_size": (positive_int, "texts, or recordings, that the networks take at once"),
}


def build_parser(models: Sequence[ModelSpec], without: Collection[str] = ()) -> ArgumentParser:
    """The options of ``serve.py`` with ``models`` that speak, but for fields ``without``."""
    parser = ArgumentParser(
        description="Serve a voice, and a recognizer, over HTTP, in the form of OpenAI's clients, with the studio at /",
        prog="serve.py",
        epilog="Exit status: 0 stopped by SIGTERM, SIGHUP or Ctrl-C, what was spoken then is finished; 1 bad input; "
        "2 wrong options.",
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 is every one of this machine"
    )
    parser.add_argument("--port", type=whole_number(0, 65535), default=8080, help="to listen on; 0: any that is free")
    text = f"environment variable that holds the key which clients must send (default: {KEY_VARIABLE}, if it is set)"
    parser.add_argument("--api-key-env", metavar="NAME", help=text)
    add_checkpoint_options(parser, _PURPOSES)
    add_options(parser.add_argument_group("computing"), ComputingOptions)
    group = parser.add_argument_group("limits")
    defaults = Limits()
    for name, (kind, text) in _LIMITS.items():
        group.add_argument(f"--{name.replace('_', '-')}", type=kind, default=getattr(defaults, name), help=text)
    add_voice_options(parser, models, without=without)
    return parser


def limits_from_args(args: argparse.Namespace) -> Limits:
    """The limits of the options."""
    return Limits(**values_of(args, Limits))


def api_key_from_args(args: argparse.Namespace) -> str | None:
    """The key that clients must send, from the environment; None: they need none.

    Raises:
        OptionError: the variable that is named is not set, or is empty.
    """
    name = args.api_key_env or KEY_VARIABLE
    key = os.environ.get(name)
    if key is None and args.api_key_env is None:
        return None
    if not key or key != key.strip():
        wrong = "is not set" if key is None else "is empty" if not key else "has spaces around the key"
        raise OptionError(f"--api-key-env {name}: the environment variable {wrong}; set it to the key")
    return key


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options of a command line, of whichever models its checkpoints are."""
    named = named_models(argv, *_SPEAKING)
    return parse_options(argv, build_parser(named), named)


def load_models(argv: Sequence[str] | None) -> ServedModels:
    """The models that a command line names, ready to work.

    Raises:
        InputError: a checkpoint cannot be read, or two of them do not fit together.
        OptionError: options do not fit together, or there is no voice.
    """
    args = parse_args(argv)
    opened = open_named_checkpoints(args, *_PURPOSES)
    recognizer = opened.pop("recognizer", None)
    opened = with_shipped(opened, with_vocoder=read_options(args, VoiceOptions).takes_shipped_vocoder)
    if (generator := opened.get("generator")) is None:
        voices = ", ".join(f"--{spec.option}" for spec in models_with("generator"))
        raise OptionError(f"no voice to speak with; give one of {voices}")
    specs = {role: one.spec for role, one in opened.items()}
    args = parse_options(argv, build_parser(list(specs.values()), unsupported_options(specs)), list(specs.values()))
    options = read_voice_options(args, specs, batch_size=limits_from_args(args).batch_size)
    precision = read_options(args, ComputingOptions).precision()
    precision.prepare_process()
    voice = make_voice(generator, opened.get("vocoder"), options, precision=precision)
    speaker = options.speaking.speaker
    if speaker is not None:
        voice.speaker_id(speaker, "--speaker")
    return ServedModels(
        voice=voice,
        voice_name=model_name(generator.path),
        speaker=speaker,
        phones_seed=None if options.front_end.p_arpabet is None else options.speaking.seed,
        recognizer=load_recognizer(recognizer, precision=precision) if recognizer else None,
        recognizer_name=model_name(recognizer.path) if recognizer else "",
    )


assert list(_LIMITS) == [field.name for field in fields(Limits)]
