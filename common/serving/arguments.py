"""Command-line options of ``serve.py``: models, limits, and where it listens."""

import argparse
import os
from dataclasses import fields
from pathlib import Path

from common.checkpoints import open_checkpoint
from common.cli import (
    ArgumentParser,
    add_length_buckets,
    add_precision_arguments,
    non_negative_int,
    positive_float,
    positive_int,
    precision_from_args,
    seed_number,
    values_of,
    whole_number,
)
from common.errors import OptionError
from common.recognition import load_recognizer
from common.serving.limits import Limits
from common.serving.models import ServedModels, model_name
from common.synthesis import check_ema, with_shipped
from common.synthesis.arguments import (
    add_speaking_arguments,
    check_roles,
    chosen_model,
    may_be_shipped,
    specs_of,
    voice_from_args,
    with_text_options,
)
from common.synthesis.engine import ENGINE_OPTION
from common.synthesis.loading import SEED
from common.synthesis.padding import LENGTHS
from common.synthesis.synthesizer import FADE_OUT

KEY_VARIABLE = "SPEECH_API_KEY"
_LIMITS = {
    "max_queue": (positive_int, "requests at once, waiting or in work; one more is refused (503)"),
    "max_characters": (positive_int, "of a text, markup included, or symbols of a prosody table"),
    "max_body": (positive_int, "bytes of a request"),
    "deadline": (positive_float, "seconds from a request's beginning to the end of its answer, which is cut then"),
    "max_audio_seconds": (positive_float, "of a recording to transcribe"),
    "batch_size": (positive_int, "texts, or recordings, that the networks take at once"),
}


def build_parser() -> ArgumentParser:
    """All options of ``serve.py``."""
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
    parser.add_argument(
        "--seed", type=seed_number, default=SEED, help="of everything random, the same for every request"
    )
    group = parser.add_argument_group("models")
    purposes = {
        "generator": "to speak with",
        "vocoder": "without one: that in voices/, or Griffin-Lim",
        "recognizer": "to transcribe with",
    }
    for spec in specs_of(*purposes):
        text = f"checkpoint of a {spec.name} model; {purposes[spec.role]}"
        group.add_argument(f"--{spec.option}", type=Path, metavar="FILE", help=text)
    group.add_argument("--engine", **ENGINE_OPTION)
    group.add_argument("--torchscript", action="store_true", help="compile the networks to TorchScript")
    group.add_argument("--compile", action="store_true", help="compile the networks with torch.compile")
    text = "record the vocoder's work for each length, rounded up, on a GPU"
    group.add_argument("--cuda-graphs", action="store_true", help=text)
    add_length_buckets(group, LENGTHS)
    add_precision_arguments(group)
    group = parser.add_argument_group("limits")
    defaults = Limits()
    for name, (kind, text) in _LIMITS.items():
        group.add_argument(f"--{name.replace('_', '-')}", type=kind, default=getattr(defaults, name), help=text)
    group = parser.add_argument_group("speaking")
    text = "frames at the end of each utterance that fade to silence"
    group.add_argument("--fade-out", type=non_negative_int, default=FADE_OUT, help=text)
    add_speaking_arguments(parser, group)
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


def load_models(args: argparse.Namespace, parser: ArgumentParser) -> ServedModels:
    """The models of the options, ready to work.

    Raises:
        InputError: a checkpoint cannot be read, or two of them do not fit together.
        OptionError: options do not fit together, or there is no voice.
    """
    if args.cuda_graphs and not args.cuda:
        raise OptionError("--cuda-graphs needs --cuda")
    if args.torchscript and args.compile:
        raise OptionError("--torchscript and --compile both compile the networks; give one of them")
    precision = precision_from_args(args)
    chosen = {role: chosen_model(args, role) for role in ("generator", "vocoder", "recognizer")}
    opened = {role: open_checkpoint(one[1], model=one[0].name, ema=args.ema) for role, one in chosen.items() if one}
    if args.ema and opened:
        check_ema(list(opened.values()))
    recognizer = opened.pop("recognizer", None)
    opened = with_shipped(opened, with_sound=may_be_shipped(args))
    generator, vocoder = opened.get("generator"), opened.get("vocoder")
    if generator is None:
        options = ", ".join(f"--{spec.option}" for spec in specs_of("generator"))
        raise OptionError(f"no voice to speak with; give one of {options}")
    check_roles(args, parser, generator=generator.spec, vocoder=None if vocoder is None else vocoder.spec)
    precision.prepare_process()
    voice = voice_from_args(args, with_text_options(generator, args), vocoder, precision=precision)
    if args.speaker is not None:
        voice.speaker_id(args.speaker, "--speaker")
    return ServedModels(
        voice=voice,
        voice_name=model_name(generator.path),
        speaker=args.speaker,
        phones_seed=None if args.p_arpabet is None else args.seed,
        recognizer=load_recognizer(recognizer, precision=precision) if recognizer else None,
        recognizer_name=model_name(recognizer.path) if recognizer else "",
    )


assert list(_LIMITS) == [field.name for field in fields(Limits)]
