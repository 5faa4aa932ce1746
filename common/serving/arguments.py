"""Command-line options of ``serve.py``: models, limits, and where it listens."""

import argparse
from pathlib import Path

from common.checkpoints import open_checkpoint
from common.cli import (
    ArgumentParser,
    add_length_buckets,
    add_precision_arguments,
    non_negative_int,
    precision_from_args,
    seed_number,
)
from common.errors import OptionError
from common.options import add_options
from common.recognition import load_recognizer
from common.serving.models import ServedModels, model_name
from common.serving.options import ServerOptions
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


def build_parser() -> ArgumentParser:
    """All options of ``serve.py``."""
    parser = ArgumentParser(
        description="Serve a voice, and a recognizer, over HTTP, in the form of OpenAI's clients, with the studio at /",
        prog="serve.py",
        epilog="Exit status: 0 stopped by SIGTERM, SIGHUP or Ctrl-C, what was spoken then is finished; 1 bad input; "
        "2 wrong options.",
    )
    add_options(parser, ServerOptions)
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
    group = parser.add_argument_group("speaking")
    text = "frames at the end of each utterance that fade to silence"
    group.add_argument("--fade-out", type=non_negative_int, default=FADE_OUT, help=text)
    add_speaking_arguments(parser, group)
    return parser


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
