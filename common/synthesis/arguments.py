"""Command-line options of inference, and what they say of the text front end and the precision."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from common.cli import non_negative_float, non_negative_int, positive_float, positive_int
from common.config import TextConfig
from common.errors import OptionError
from common.precision import (
    Autocast,
    add_precision_arguments,
    amp_dtype_from_args,
    autocast,
    check_cuda,
    check_precision_arguments,
    choose_kernels,
    keep_freed_memory,
)
from common.registry import GENERATORS
from common.synthesis.vocoder import ACCEPTABLE_DIFFERENCES
from common.text.arguments import add_phoneme_overrides, override_phonemes
from common.text.cleaners import CLEANERS
from common.text.front_end import UNKNOWN_SYMBOLS
from common.text.symbols import CHARACTER_SETS, PHONE_SETS

WARMUP_STEPS = 3  # batches of --include-warmup
TRANSFORMS = ("flatten", "invert", "amplify", "shift", "custom")
GENERATOR_OPTIONS = (
    *("input_type", "symbol_set", "text_cleaners", "unknown_symbols"),
    *("p_arpabet", "cmudict_path", "heteronyms_path", "g2p", "g2p_language"),
)
VOCODER_OPTIONS = ("denoising_strength", "accept_audio_differences", "cuda_graphs")
MODEL_OPTIONS = {  # that one model alone has a notion of
    "FastPitch": (
        *("speaker", "pace", "max_duration", "pitch_mean_std_file"),
        *(f"{what}_transform_{name}" for what in ("pitch", "energy") for name in TRANSFORMS),
    ),
    "Tacotron2": ("max_decoder_steps", "gate_threshold"),
    "WaveGlow": ("wn_channels", "sigma_infer", "chunk_frames"),
}
SIGMA_INFER = 0.9  # as published


def checkpoint_option(model: str) -> str:
    """The option that takes a model's checkpoint, without its hyphens: ``HiFi-GAN`` -> ``hifigan``."""
    return model.lower().replace("-", "")


def given_checkpoint(args: argparse.Namespace, names: Sequence[str]) -> tuple[str, Path] | None:
    """The model among ``names`` whose checkpoint is given, and its path.

    Raises:
        OptionError: several are given.
    """
    given = [(name, path) for name in names if (path := getattr(args, checkpoint_option(name), None)) is not None]
    if len(given) > 1:
        options = " and ".join("--" + checkpoint_option(name) for name, _ in given)
        raise OptionError(f"{options} do the same job; give one of them")
    return given[0] if given else None


def add_inference_arguments(
    parser: argparse.ArgumentParser, *, generators: Sequence[str], vocoders: Sequence[str]
) -> None:
    """Add all options; ``generators`` and ``vocoders`` are the models whose checkpoints can be given."""
    parser.add_argument(
        "-i",
        "--input",
        type=Path,
        required=True,
        help="phrases: lines of output.wav|utterance, plain lines, or a header that names columns (output, text, mel, "
        "wav, pitch, duration, speaker) parted by tabs",
    )
    parser.add_argument("-o", "--output", type=Path, help="folder for the sound, one file a phrase")
    parser.add_argument("--log-file", type=Path, help="log of the figures; nvlog_infer.json in --output if not given")
    parser.add_argument("--save-mels", action="store_true", help="keep the mel-spectrograms too, in --output/mels")
    parser.add_argument("--no-audio", action="store_true", help="stop at the mel-spectrograms")
    parser.add_argument(
        "--dataset-path", type=Path, default=Path(), help="folder that mel, wav, pitch and duration start from"
    )
    parser.add_argument("--seed", type=int, default=1234, help="of everything random, the same for every phrase")
    group = parser.add_argument_group("models")
    for name in generators:
        group.add_argument(
            f"--{checkpoint_option(name)}",
            type=Path,
            help=f"checkpoint of a {name} model, to speak from text; without it the list's mel or wav column "
            "becomes sound",
        )
    for name in vocoders:
        group.add_argument(
            f"--{checkpoint_option(name)}", type=Path, help=f"checkpoint of a {name} model; without it: Griffin-Lim"
        )
    group.add_argument("--griffin-lim-iters", type=positive_int, default=60, help="rounds of Griffin-Lim")
    group.add_argument(
        "--ema", action="store_true", help="use the averaged weights of each checkpoint that has them; one must"
    )
    group.add_argument("--torchscript", action="store_true", help="compile the networks to TorchScript")
    group.add_argument(
        "--accept-audio-differences",
        nargs="+",
        choices=ACCEPTABLE_DIFFERENCES,
        default=[],
        help="speak mels that differ in these from what the vocoder was trained on, by default in neither; better "
        "fine-tune it",
    )
    _add_speaking_arguments(parser)
    _add_tacotron2_arguments(parser)
    _add_waveglow_arguments(parser)
    add_text_arguments(parser)
    _add_measuring_arguments(parser)


def _add_speaking_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("speaking")
    group.add_argument("--fade-out", type=non_negative_int, default=10, help="frames at the end that fall to silence")
    group.add_argument(
        "--denoising-strength",
        type=non_negative_float,
        default=0.0,
        help="how much of a vocoder's own noise is subtracted; 0.005 is a little",
    )
    group = parser.add_argument_group("speaking with FastPitch", "refused with other models, which know nothing of it")
    group.add_argument("--speaker", default="0", help="number or name of the voice, where the list has no such column")
    group.add_argument("--pace", type=positive_float, default=1.0, help="2 speaks twice as fast")
    group.add_argument("--max-duration", type=positive_float, default=75.0, help="longest symbol, in frames at pace 1")
    group.add_argument("--pitch-transform-flatten", action="store_true", help="flatten the pitch to its mean")
    group.add_argument("--pitch-transform-invert", action="store_true", help="mirror the pitch at its mean")
    group.add_argument(
        "--pitch-transform-amplify", type=float, metavar="FACTOR", help="scale the pitch's distance from its mean"
    )
    group.add_argument("--pitch-transform-shift", type=float, metavar="HZ", help="raise or lower the pitch")
    group.add_argument(
        "--pitch-mean-std-file", type=Path, help="pitch statistics (JSON, Hz) of a voice whose checkpoint has none"
    )
    group.add_argument(
        "--pitch-transform-custom", action="store_true", help="apply the function of pitch_transform.py, alone"
    )
    group.add_argument(
        "--energy-transform-flatten", action="store_true", help="flatten the energy to each phrase's mean"
    )
    group.add_argument("--energy-transform-invert", action="store_true", help="mirror the energy at its mean")
    group.add_argument(
        "--energy-transform-amplify", type=float, metavar="FACTOR", help="scale the energy's distance from its mean"
    )
    group.add_argument(
        "--energy-transform-shift",
        type=float,
        metavar="NUMBER",
        help="add to the energy, log(1 + norm of a log-mel frame): less is louder",
    )
    group.add_argument(
        "--energy-transform-custom", action="store_true", help="apply the function of energy_transform.py, alone"
    )


def _add_tacotron2_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("speaking with Tacotron 2", "what is left out is as the checkpoint says")
    group.add_argument(
        "--max-decoder-steps",
        type=positive_int,
        help="frames after which a phrase is cut that the model has not ended; it is named in a warning",
    )
    group.add_argument("--gate-threshold", type=positive_float, help="probability, below 1, at which a phrase ends")


def _add_waveglow_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("speaking with WaveGlow")
    group.add_argument(
        "--wn-channels", type=positive_int, help="width of its networks; a checkpoint of another width is refused"
    )
    group.add_argument(
        "--sigma-infer",
        type=non_negative_float,
        default=SIGMA_INFER,
        help="standard deviation of the noise that becomes sound",
    )
    group.add_argument(
        "--chunk-frames",
        type=positive_int,
        help="compute so many mel frames at a time, in memory that hardly grows with the length; the sound is the same",
    )


def add_text_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be said of the text front end instead of the checkpoint, as ``text_config_from_args`` reads it."""
    group = parser.add_argument_group("text", "what a checkpoint says of its text front end need not be repeated")
    group.add_argument("--input-type", choices=("char", "phone"), help="instead of the checkpoint's")
    group.add_argument("--symbol-set", choices=(*CHARACTER_SETS, *PHONE_SETS), help="instead of the checkpoint's")
    group.add_argument("--text-cleaners", nargs="*", choices=tuple(CLEANERS), help="instead of the checkpoint's")
    group.add_argument(
        "--unknown-symbols",
        choices=UNKNOWN_SYMBOLS,
        default="error",
        help="symbols the voice does not know end the run, or are dropped with one warning that counts them",
    )
    add_phoneme_overrides(group)


def _add_measuring_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("computing and measuring")
    add_precision_arguments(group)
    group.add_argument("--compile", action="store_true", help="compile the networks with torch.compile")
    group.add_argument(
        "--cuda-graphs", action="store_true", help="record the vocoder's work for each length, rounded up, on a GPU"
    )
    group.add_argument("-bs", "--batch-size", type=positive_int, default=64, help="phrases at once")
    group.add_argument("--repeats", type=positive_int, default=1, help="speak the list so often, to measure it")
    group.add_argument(
        "--warmup-steps", type=non_negative_int, default=0, help="batches to speak before measuring begins"
    )
    group.add_argument(
        "--include-warmup",
        dest="warmup_steps",
        action="store_const",
        const=WARMUP_STEPS,
        default=argparse.SUPPRESS,
        help=f"the same as --warmup-steps {WARMUP_STEPS}",
    )


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that would do nothing, or not what they say.

    Raises:
        OptionError: names the options and what to do.
    """
    if args.output is None and args.repeats == 1 and args.log_file is None:
        raise OptionError("nothing would be kept; give --output, or --repeats or --log-file to measure alone")
    if args.save_mels and args.output is None:
        raise OptionError("--save-mels needs --output to save them in")
    if args.output is not None and args.no_audio and not args.save_mels:
        raise OptionError("--no-audio with --output needs --save-mels, or nothing would be written")
    check_precision_arguments(args)
    if args.cuda_graphs and not args.cuda:
        raise OptionError("--cuda-graphs needs --cuda")
    if args.torchscript and args.compile:
        raise OptionError("--torchscript and --compile both compile the networks; give one of them")
    if args.gate_threshold is not None and args.gate_threshold >= 1:
        raise OptionError(f"--gate-threshold {args.gate_threshold}: expected a probability between 0 and 1")
    for what in ("pitch", "energy"):
        given = transform_options(args, what)
        others = [name for name in given if name != "custom"]
        if "custom" in given and others:
            raise OptionError(
                f"--{what}-transform-custom is applied alone; leave out --{what}-transform-{others[0]}, or do it in "
                "there"
            )


def check_roles(
    args: argparse.Namespace, parser: argparse.ArgumentParser, *, generator: str | None, vocoder: str | None
) -> None:
    """Refuse options about models other than those whose checkpoints are given; these are their names.

    Raises:
        OptionError: names the first such option.
    """

    def given(names: tuple[str, ...]) -> list[str]:
        return [f"--{name.replace('_', '-')}" for name in names if getattr(args, name) != parser.get_default(name)]

    if generator is None:
        for option in given(GENERATOR_OPTIONS):
            raise OptionError(f"{option} is for speaking from text; give a text-to-mel checkpoint")
    for model, names in MODEL_OPTIONS.items():
        if model in (generator, vocoder):
            continue
        instead = generator if model in GENERATORS else vocoder
        for option in given(names):
            raise OptionError(
                f"{option} is for {model}; give --{checkpoint_option(model)}"
                if instead is None
                else f"{option} is for {model}, and {instead} knows nothing of it; leave it out"
            )
    if vocoder is None:
        for option in given(VOCODER_OPTIONS):
            raise OptionError(f"{option} is for a vocoder's network; give a vocoder's checkpoint")
    if generator is None and vocoder is None:
        if args.ema:
            raise OptionError("--ema needs a checkpoint to take the averaged weights from")
        for option in given(("torchscript", "compile")):
            raise OptionError(f"{option} needs a network to compile; give a checkpoint")
    if vocoder is not None and args.no_audio:
        raise OptionError("--no-audio leaves no work for a vocoder; leave one of them out")


def transform_options(args: argparse.Namespace, what: str) -> dict[str, float | bool]:
    """The ``--pitch-transform-*`` or ``--energy-transform-*`` options that are given, by their last word."""
    values = {name: getattr(args, f"{what}_transform_{name}") for name in TRANSFORMS}
    return {name: value for name, value in values.items() if value is not None and value is not False}


def vocoder_settings(args: argparse.Namespace, model: str, config: Any, *, where: Path) -> dict[str, Any]:
    """What the options tell a vocoder's ``infer`` besides the mels; ``config`` is the ModelConfig of ``where``.

    Raises:
        OptionError: the checkpoint is not as wide as ``--wn-channels`` says.
    """
    if model != "WaveGlow":
        return {}
    if args.wn_channels not in (None, config.wn_channels):
        raise OptionError(
            f"--wn-channels {args.wn_channels}: {where} has {config.wn_channels}; leave the option out, or give "
            "another checkpoint"
        )
    return {"sigma": args.sigma_infer, "seed": args.seed, "chunk_frames": args.chunk_frames}


def device_from_args(args: argparse.Namespace) -> torch.device:
    """The device that networks run on.

    Raises:
        OptionError: ``--cuda`` without a usable GPU.
    """
    if args.cuda:
        check_cuda()
    return torch.device("cuda" if args.cuda else "cpu")


def text_config_from_args(args: argparse.Namespace, stored: TextConfig | None, *, where: Path) -> TextConfig:
    """The checkpoint's text front end, with what the command line says of it instead.

    A checkpoint of a published layout may not say how its text was read; then a line on stdout says what is assumed.
    """
    given = {"input_type": args.input_type, "symbol_set": args.symbol_set, "cleaners": args.text_cleaners}
    changes = {key: tuple(value) if key == "cleaners" else value for key, value in given.items() if value is not None}
    config = override_phonemes(args, replace(stored or TextConfig(), **changes))
    if stored is None:
        print(
            f"{where} does not say how its text was read; taken to be --input-type {config.input_type} "
            f"--symbol-set {config.symbol_set} --text-cleaners {' '.join(config.cleaners)}"
        )
    return config


def autocast_from_args(args: argparse.Namespace, device: torch.device) -> Autocast:
    """What gives the context that networks run in: mixed precision with ``--amp``."""
    dtype = amp_dtype_from_args(args)
    return lambda: autocast(device, dtype)


def set_up(args: argparse.Namespace) -> tuple[torch.device, Autocast]:
    """Where networks run and in which precision, with this process prepared for it."""
    device = device_from_args(args)
    choose_kernels(args)
    if not args.cuda:
        keep_freed_memory()
    return device, autocast_from_args(args, device)
