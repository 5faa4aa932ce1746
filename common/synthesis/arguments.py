"""Command-line options of speech synthesis: models, text front end, and measuring."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.audio import SOUND_SUFFIXES
from common.checkpoints import LoadedCheckpoint, add_ema_argument
from common.cli import (
    ArgumentParser,
    add_length_buckets,
    add_precision_arguments,
    given_options,
    non_negative_int,
    option_of,
    positive_int,
    real_number,
    seed_number,
    values_of,
)
from common.config import INPUT_TYPES, AudioConfig, TextConfig
from common.errors import OptionError
from common.files import read_standard_input
from common.precision import Precision
from common.published_options import INFERENCE, architecture_options
from common.registry import GeneratorSpec, ModelSpec, available_models, get_model
from common.synthesis.captions import SUBTITLES
from common.synthesis.command import STREAM_FORMATS, SpeakingOptions, names_sound
from common.synthesis.compile import accelerated
from common.synthesis.controls import VOCODER_PITCHES
from common.synthesis.cuda_graphs import CudaGraphRecorder
from common.synthesis.engine import ENGINE_OPTION, check_engine, load_in_engine
from common.synthesis.loading import SEED, Accelerate, contract_of, load_vocoder, load_voice
from common.synthesis.measurements import MANY_BATCHES
from common.synthesis.padding import LENGTHS, PaddedShapes
from common.synthesis.synthesizer import FADE_OUT
from common.synthesis.vocoder import ACCEPTABLE_DIFFERENCES, GRIFFIN_LIM_ITERATIONS, GriffinLimVocoder, Vocoder
from common.synthesis.voice import Voice
from common.text import CHARACTER_SETS, CLEANERS, PHONE_SETS, UNKNOWN_SYMBOLS
from common.text.arguments import add_phoneme_overrides, override_phonemes, with_phone_features

if TYPE_CHECKING:
    from common.synthesis.prosody_table import Prosody

WARMUP_STEPS = 3  # batches of --include-warmup
_GENERATOR_OPTIONS = (
    *("input_type", "symbol_set", "text_cleaners", "unknown_symbols", "speaker"),
    *("phone_features", "p_arpabet", "cmudict_path", "heteronyms_path", "g2p", "g2p_language", "lexicon"),
    *("text", "prosody", "subtitles", "timings", "save_prosody", "engine", "vocoder_pitch"),
)
_KEPT = ("save_mels", "plots", "subtitles", "timings", "save_prosody")  # files besides the sound
STANDARD = Path("-")  # standard input and output
_VOCODER_OPTIONS = ("denoising_strength", "accept_audio_differences", "cuda_graphs", "vocoder_pitch")
_MODEL_DESTINATIONS = "model_destinations"  # default of the parser that holds which options are which model's


def specs_of(*roles: str) -> list[ModelSpec]:
    """The models of these roles whose packages are here."""
    return [get_model(name) for role in roles for name in available_models(role)]


def add_inference_arguments(parser: ArgumentParser) -> None:
    """Add all options of ``inference.py`` for text and mels to sound, of every generator and vocoder."""
    parser.add_argument(
        "-i",
        "--input",
        type=Path,
        help="phrases: lines of output.wav|utterance, plain lines, or a header that names columns (output, text, mel, "
        "wav, pitch, duration, speaker) separated by tabs; output's suffix decides the format: "
        f"{SOUND_SUFFIXES}; or - for one text, of any length, from standard input",
    )
    parser.add_argument("--text", help="one text to speak, plain or with SSML, of any length, instead of --input")
    text = "one text's prosody to speak, as --save-prosody writes it, instead of --input"
    parser.add_argument("--prosody", type=Path, metavar="FILE", help=text)
    text = "folder for the sound, one file a phrase; of one text also its file, or - for standard output"
    parser.add_argument("-o", "--output", type=Path, help=text)
    text = "what standard output gets: a WAV, or 16-bit integers without header"
    parser.add_argument("--stdout-format", choices=STREAM_FORMATS, default="wav", help=text)
    parser.add_argument("--quiet", action="store_true", help="print warnings and errors alone")
    parser.add_argument("--log-file", type=Path, help="log of the figures; nvlog_infer.json in --output if not given")
    parser.add_argument("--save-mels", action="store_true", help="keep the mel-spectrograms too, in --output/mels")
    parser.add_argument("--plots", action="store_true", help="draw each utterance beside its sound: a.png for a.wav")
    text = "write subtitles of the words beside the sound, a.srt of a.wav"
    parser.add_argument("--subtitles", choices=SUBTITLES, help=text)
    text = "write when each word and symbol is said beside the sound, a.timings.json of a.wav"
    parser.add_argument("--timings", action="store_true", help=text)
    text = "write each symbol's frames, pitch and energy beside the sound, a.prosody.json of a.wav, for --prosody"
    parser.add_argument("--save-prosody", action="store_true", help=text)
    parser.add_argument("--no-audio", action="store_true", help="stop at the mel-spectrograms")
    parser.add_argument(
        "--dataset-path", type=Path, default=Path(), help="folder that mel, wav, pitch and duration start from"
    )
    text = "of everything random, the same for every phrase"
    parser.add_argument("--seed", type=seed_number, default=SEED, help=text)
    group = parser.add_argument_group("models")
    for spec in specs_of("generator", "vocoder"):
        purpose = ", to speak from text; without it the list's mel or wav column becomes sound"
        purpose = purpose if spec.role == "generator" else "; without one: that in voices/, or Griffin-Lim"
        group.add_argument(f"--{spec.option}", type=Path, help=f"checkpoint of a {spec.name} model{purpose}")
    group.add_argument("--engine", **ENGINE_OPTION)
    group.add_argument("--torchscript", action="store_true", help="compile the networks to TorchScript")
    group = parser.add_argument_group("speaking")
    text = "frames at the end of each utterance that fade to silence"
    group.add_argument("--fade-out", type=non_negative_int, default=FADE_OUT, help=text)
    add_speaking_arguments(parser, group)
    _add_measuring_arguments(parser)
    configs = [spec.config for spec in specs_of("generator", "vocoder")]
    parser.answer_published(architecture_options(configs) | INFERENCE)


def add_speaking_arguments(parser: ArgumentParser, group: argparse._ActionsContainer) -> None:
    """Add what tells generators, vocoders and Griffin-Lim how to speak, with each model's own options."""
    add_ema_argument(group)
    text = "number or name of the speaker, where neither the list nor the prosody says it; the first if not given"
    group.add_argument("--speaker", help=text)
    text = (
        f"iterations of Griffin-Lim, which then makes the sound without a vocoder (default: {GRIFFIN_LIM_ITERATIONS})"
    )
    group.add_argument("--griffin-lim-iters", type=positive_int, help=text)
    text = "whose pitch a vocoder that takes one speaks with: the mel's, or the voice's, as predicted, changed or given"
    group.add_argument("--vocoder-pitch", choices=VOCODER_PITCHES, default="mel", help=text)
    text = "how much of a vocoder's own noise is subtracted; 0.005 is a little"
    group.add_argument("--denoising-strength", type=real_number(0, 100), default=0.0, help=text)
    group.add_argument(
        "--accept-audio-differences",
        nargs="+",
        choices=ACCEPTABLE_DIFFERENCES,
        default=[],
        help="speak mels that differ in these from what the vocoder was trained on, by default in neither; better "
        "fine-tune it",
    )
    owned: dict[str, list[str]] = {}
    for spec in specs_of("generator", "vocoder"):
        before = {action.dest for action in parser._actions}
        if spec.inference.add_arguments is not None:
            spec.inference.add_arguments(parser)
        owned[spec.name] = [action.dest for action in parser._actions if action.dest not in before]
    parser.set_defaults(**{_MODEL_DESTINATIONS: owned})
    add_text_arguments(parser)


def add_text_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that replace the checkpoint's text front end, as `with_text_options` reads them."""
    group = parser.add_argument_group("text", "the checkpoint's text front end need not be repeated")
    group.add_argument("--input-type", choices=INPUT_TYPES, help="instead of the checkpoint's")
    text = "table of phonological features of a published voice whose checkpoint holds none, as train.py reads it"
    group.add_argument("--phone-features", type=Path, metavar="FILE", help=text)
    group.add_argument("--symbol-set", choices=(*CHARACTER_SETS, *PHONE_SETS), help="instead of the checkpoint's")
    group.add_argument("--text-cleaners", nargs="*", choices=tuple(CLEANERS), help="instead of the checkpoint's")
    group.add_argument(
        "--unknown-symbols",
        choices=UNKNOWN_SYMBOLS,
        default="drop",
        help="symbols that the voice lacks are dropped, with one warning that counts them, or end the run",
    )
    group.add_argument("--lexicon", type=Path, metavar="FILE", help="lines of word, tab, phones: how words are said")
    add_phoneme_overrides(group)


def _add_measuring_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("computing and measuring")
    add_precision_arguments(group)
    group.add_argument("--compile", action="store_true", help="compile the networks with torch.compile")
    text = "record the vocoder's work for each length, rounded up, on a GPU"
    group.add_argument("--cuda-graphs", action="store_true", help=text)
    add_length_buckets(group, LENGTHS)
    group.add_argument("-bs", "--batch-size", type=positive_int, default=64, help="phrases at once")
    group.add_argument("--repeats", type=positive_int, default=1, help="speak the list so often, to measure it")
    text = "batches to speak before measuring begins"
    group.add_argument("--warmup-steps", type=non_negative_int, default=0, help=text)
    text = f"the same as --warmup-steps {WARMUP_STEPS}"
    constant: dict[str, Any] = {"action": "store_const", "const": WARMUP_STEPS, "default": argparse.SUPPRESS}
    group.add_argument("--include-warmup", dest="warmup_steps", **constant, help=text)
    text = f"print latencies with their intervals, and throughput; done anyway for more than {MANY_BATCHES} batches"
    group.add_argument("--benchmark", action="store_true", help=text)


def chosen_model(args: argparse.Namespace, role: str) -> tuple[ModelSpec, Path] | None:
    """The model with ``role`` whose checkpoint is given, and its path.

    Raises:
        OptionError: several are given.
    """
    given = [(spec, getattr(args, spec.option)) for spec in specs_of(role) if getattr(args, spec.option) is not None]
    if len(given) > 1:
        options = " and ".join(f"--{spec.option}" for spec, _ in given)
        raise OptionError(f"{options} do the same job; give one of them")
    return given[0] if given else None


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that have no effect.

    Raises:
        OptionError: names the options and what to do.
    """
    if args.quiet and args.benchmark:
        raise OptionError("--quiet prints nothing of what --benchmark measures; leave one of them out")
    if args.output is None and args.log_file is None and (args.quiet or (args.repeats == 1 and not args.benchmark)):
        others = "" if args.quiet else "--benchmark, --repeats or "
        raise OptionError(f"nothing would be kept; give --output, or {others}--log-file to measure alone")
    sources = [name for name in ("input", "text", "prosody") if getattr(args, name) is not None]
    if len(sources) != 1:
        got = " and ".join(map(option_of, sources)) or "none of them"
        raise OptionError(f"give one of --input, --text and --prosody, not {got}")
    if not speaks_one_text(args) and args.output is not None and names_sound(args.output):
        raise OptionError(
            f"--output {args.output}: expected a folder; files are named in the list: {args.output.name}|text"
        )
    if not speaks_one_text(args) and args.output == STANDARD:
        raise OptionError("--output - is for one text: --text, --prosody or --input -")
    wanted = [name for name in _KEPT if getattr(args, name)]
    if wanted and (args.output is None or args.output == STANDARD):
        raise OptionError(f"{option_of(wanted[0])} needs --output with a file or folder to save them in")
    if args.output is not None and args.no_audio and not wanted:
        raise OptionError("--no-audio with --output needs --save-mels or --plots, or nothing would be written")
    if speaks_one_text(args) and args.dataset_path != Path():
        raise OptionError(f"--dataset-path {args.dataset_path}: a list's files start from it; leave it out")
    if args.output == STANDARD:
        _check_stream_options(args)
    elif args.stdout_format != "wav":
        raise OptionError("--stdout-format is for --output -")
    if args.cuda_graphs and not args.cuda:
        raise OptionError("--cuda-graphs needs --cuda")
    if args.torchscript and args.compile:
        raise OptionError("--torchscript and --compile both compile the networks; give one of them")


def _check_stream_options(args: argparse.Namespace) -> None:
    for name, off in {"no_audio": False, "repeats": 1, "warmup_steps": 0, "benchmark": False, "batch_size": 64}.items():
        if getattr(args, name) != off:
            raise OptionError(f"{option_of(name)} is not supported by --output -; give it a file or folder")
    if args.log_file is not None:
        raise OptionError("--log-file is not supported by --output -, which measures nothing")


def speaks_one_text(args: argparse.Namespace) -> bool:
    """Whether the options give one text, in place of a list."""
    return args.input is None or args.input == STANDARD


def read_text(args: argparse.Namespace) -> "tuple[str | Prosody, str]":
    """The one text or prosody table that is given, and where it comes from, for messages.

    Raises:
        InputError: standard input is not UTF-8, or the table cannot be read.
    """
    if args.prosody is not None:
        from common.synthesis.prosody_table import load_prosody  # pydantic takes long to import

        return load_prosody(args.prosody), str(args.prosody)
    if args.text is not None:
        return args.text, "--text"
    return read_standard_input(), "standard input"


def speaking_options(args: argparse.Namespace) -> SpeakingOptions:
    """How a list is spoken and measured."""
    return SpeakingOptions(**values_of(args, SpeakingOptions))


def check_roles(
    args: argparse.Namespace, parser: argparse.ArgumentParser, *, generator: ModelSpec | None, vocoder: ModelSpec | None
) -> None:
    """Refuse options of other models than those whose checkpoints are given.

    Raises:
        OptionError: names the first such option.
    """
    given = given_options(args, parser)

    def first_of(names: Sequence[str]) -> str | None:
        return next((option_of(name) for name in given if name in names), None)

    if generator is None and (option := first_of(_GENERATOR_OPTIONS)):
        raise OptionError(f"{option} is for speaking from text; give a text-to-mel checkpoint")
    speaks = generator and generator.inference
    if generator and isinstance(speaks, GeneratorSpec) and speaks.n_speakers is None and first_of(("speaker",)):
        raise OptionError(f"--speaker is not supported by {generator.name}; leave it out")
    for name, owned in getattr(args, _MODEL_DESTINATIONS).items():
        spec = get_model(name)
        instead = generator if spec.role == "generator" else vocoder
        if (instead is None or instead.name != name) and (option := first_of(owned)):
            raise OptionError(
                f"{option} is for {name}; give a checkpoint of it"
                if instead is None
                else f"{option} is for {name} and not supported by {instead.name}; leave it out"
            )
    if vocoder is None and (option := first_of(_VOCODER_OPTIONS)):
        raise OptionError(f"{option} is for a vocoder's network; give a vocoder's checkpoint")
    if generator is None and vocoder is None:
        if args.ema is not None:
            raise OptionError("--ema and --no-ema choose a checkpoint's weights; give a checkpoint, or leave them out")
        if option := first_of(("torchscript", "compile")):
            raise OptionError(f"{option} needs a network to compile; give a checkpoint")
    of_sound = "a vocoder" if vocoder is not None else first_of(("griffin_lim_iters", "fade_out"))
    if of_sound and first_of(("no_audio",)):
        raise OptionError(f"--no-audio leaves no work for {of_sound}; leave one of them out")
    if vocoder is not None and first_of(("griffin_lim_iters",)):
        raise OptionError("--griffin-lim-iters is for Griffin-Lim, and a vocoder is given; leave it out")


def may_be_shipped(args: argparse.Namespace) -> bool:
    """Whether the shipped vocoder may make the sound where none is given; it has no TorchScript."""
    return args.griffin_lim_iters is None and not args.torchscript


def parse_model_options(args: argparse.Namespace, spec: ModelSpec) -> Any:
    """The model's own inference options, as its package parses them."""
    return None if spec.inference.parse is None else spec.inference.parse(args)


def voice_from_args(
    args: argparse.Namespace,
    generator: LoadedCheckpoint,
    vocoder: LoadedCheckpoint | None,
    *,
    precision: Precision,
    with_sound: bool = True,
) -> Voice:
    """The voice of checkpoints, as the options say; without a vocoder's it speaks by Griffin-Lim, or makes mels alone.

    Raises:
        InputError: a checkpoint lacks what the options need, or the vocoder reads other mels.
    """
    check_engine(args.engine, precision=precision, torchscript=args.torchscript, compile=args.compile)
    if vocoder is not None:
        contract_of(vocoder, generator, accepted=args.accept_audio_differences)
    own = griffin_lim_from_args(args, generator.checkpoint.audio) if vocoder is None and with_sound else None

    def load(generator: LoadedCheckpoint, vocoder: LoadedCheckpoint | None) -> Voice:
        return load_voice(
            generator,
            own if vocoder is None else vocoder_from_args(args, vocoder, precision=precision),
            precision=precision,
            options=parse_model_options(args, generator.spec),
            seed=args.seed,
            unknown_symbols=args.unknown_symbols,
            lexicon=args.lexicon,
            fade_out=args.fade_out,
            vocoder_pitch=args.vocoder_pitch,
            accelerate=_accelerate_from_args(args),
            shapes=PaddedShapes.of(args.length_buckets, args.batch_size),
        )

    voice = load_in_engine(args.engine, generator, vocoder, precision=precision, load=load)
    return voice if with_sound else replace(voice, vocoder=None)


def vocoder_from_args(args: argparse.Namespace, vocoder: LoadedCheckpoint, *, precision: Precision) -> Vocoder:
    """The vocoder of a checkpoint, as the options say."""
    return load_vocoder(
        vocoder,
        parse_model_options(args, vocoder.spec),
        precision=precision,
        seed=args.seed,
        denoising_strength=args.denoising_strength,
        accelerate=_accelerate_from_args(args),
        graph_recorder=CudaGraphRecorder() if args.cuda_graphs else None,
        shapes=PaddedShapes.of(args.length_buckets, args.batch_size),
    )


def griffin_lim_from_args(args: argparse.Namespace, audio: AudioConfig) -> Vocoder:
    """What makes sound without a vocoder's checkpoint, and a line that says so."""
    print("no vocoder checkpoint is given: the sound is made by Griffin-Lim, clear but rough")
    return GriffinLimVocoder(audio, seed=args.seed, n_iter=args.griffin_lim_iters)


def _accelerate_from_args(args: argparse.Namespace) -> Accelerate:
    shapes = PaddedShapes.of(args.length_buckets, args.batch_size)
    return partial(accelerated, torchscript=args.torchscript, compile=args.compile, shapes=shapes)


def with_text_options(loaded: LoadedCheckpoint, args: argparse.Namespace) -> LoadedCheckpoint:
    """A generator's checkpoint with the options in place of fields of its text front end.

    A checkpoint of a published layout may not say how its text was read; then a line on stdout says what is assumed.
    """
    stored = loaded.checkpoint.text
    if stored is not None and stored.input_type == "pf":
        return replace(loaded, checkpoint=replace(loaded.checkpoint, text=with_phone_features(args, stored)))
    if args.input_type == "pf" or args.phone_features is not None:
        option = "--input-type pf" if args.phone_features is None else "--phone-features"
        raise OptionError(f"{option}: {loaded.path} reads symbols, not phonological features; leave it out")
    given = {"input_type": args.input_type, "symbol_set": args.symbol_set}
    changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    config = override_phonemes(args, replace(stored or TextConfig(), **changes))
    if args.text_cleaners is not None:
        config = replace(config, cleaners=tuple(args.text_cleaners))
    if stored is None:
        print(
            f"{loaded.path} does not say how its text was read; taken to be --input-type {config.input_type} "
            f"--symbol-set {config.symbol_set} --text-cleaners {' '.join(config.cleaners)}"
        )
    return replace(loaded, checkpoint=replace(loaded.checkpoint, text=config))
