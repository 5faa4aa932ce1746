"""Command-line options of extract_mels.py, which of them fit together, and the plan that they describe."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from common.audio import MelExtractor
from common.audio.arguments import add_audio_arguments, audio_config_from_args
from common.audio.pitch import KINDS, METHODS
from common.checkpoints import LoadedCheckpoint, add_ema_argument, open_checkpoint
from common.checkpoints.command_line import check_ema, models_with
from common.cli import (
    ArgumentParser,
    add_precision_arguments,
    n_loaders,
    n_processes,
    names_given,
    non_negative_float,
    option_of,
    positive_float,
    positive_int,
    values_of,
)
from common.config import AudioConfig, TextConfig, differences, from_plain
from common.errors import InputError, OptionError
from common.extraction.features import FROM_ATTENTION, FROM_FILES, FROM_TEXTGRIDS, ExtractionPlan, Teacher
from common.extraction.teacher_forcing import TeacherForcing
from common.files import sha256
from common.options import add_options
from common.published_options import EXTRACTION, TEACHER_FORCING, architecture_options
from common.registry import GeneratorSpec, ModelSpec
from common.synthesis.options import FrontEndOptions
from common.text import CHARACTER_SETS, CLEANERS, PHONE_SETS, UNKNOWN_SYMBOLS
from common.text.cleaners import ENGLISH_V3

PEAK_NORM = 32767 / 32768  # the largest 16-bit sample, as the original scales to
_FLAGS = {  # what to extract
    "--extract-mels": "mel-spectrograms, into mels/",
    "--extract-durations": "durations of the transcript's symbols, from a teacher's attention, into durations/",
    "--extract-attentions": "the teacher's attention, tensors (frames, symbols), into attentions/",
    "--extract-mels-teacher": "the teacher's mel-spectrograms under teacher forcing, into mels_teacher/",
    "--extract-durs-from-textgrids": "durations of the phones in TextGrid/a.TextGrid, into durations/",
    **{
        option_of(f"extract_{kind}"): f"pitch of each {unit}, into {kind}/ (in Hz: {kind}_hz/)"
        for kind, unit in zip(KINDS, ("mel frame", "symbol", "third of a symbol"))
    },
    "--extract-pitch": "pitch of each mel frame in Hz, into pitch/, for lists of mels/a.pt|pitch/a.pt|text to train "
    "with --learned-alignment",
    "--save-alignment-priors": "priors of alignments, tensors (frames, symbols) of --symbol-set and --text-cleaners, "
    "into alignment_priors/, for train.py --alignment-priors",
}
_TAUGHT = ("extract_durations", "extract_attentions", "extract_mels_teacher")  # options that need a teacher


def extraction_parser() -> ArgumentParser:
    """The options of an extraction from recordings."""
    parser = ArgumentParser(
        description="Extract mel-spectrograms, durations and pitch of the recordings in a list.",
        epilog="Exit status: 0 all utterances made, 1 some refused or bad input, 2 wrong options. The mels that a "
        "text-to-mel model makes, to fine-tune a vocoder on, have options of their own: --checkpoint FILE --help.",
    )
    _add_data_arguments(parser)
    _add_feature_arguments(parser)
    _add_teacher_arguments(parser)
    work = parser.add_argument_group("work")
    work.add_argument("--cuda", action="store_true", help="make the mel-spectrograms and run the teacher on the GPU")
    work.add_argument("--num-workers", type=n_processes, help="processes (default: one for each core)")
    work.add_argument("--resume", action="store_true", help="keep the complete files of an earlier run")
    add_audio_arguments(parser)
    parser.add_argument("--peak-norm", action="store_true", help=f"the same as --peak {PEAK_NORM:.6f}")
    parser.answer_published(_architecture_of_generators() | EXTRACTION)
    return parser


def _add_data_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("data").add_argument
    add("-d", "--dataset-path", type=Path, default=Path(), help="folder that the lists' paths start from")
    lists = (
        "lists of wavs/a.wav|text[|speaker]; with several, the first is the training list, whose pitch statistics "
        "normalize them all"
    )
    add("--wav-text-filelist", type=Path, nargs="+", required=True, help=lists)
    metas = (
        "lists to write, one for each --wav-text-filelist: mels/a.pt|durations/a.pt|pitch_char/a.pt|text, ready "
        "for training; text is the phones where TextGrids give the durations"
    )
    add("--output-meta-file", type=Path, nargs="+", default=(), help=metas)
    scale = (
        "refuse recordings whose samples have another full scale than this: (2 ** bit depth) / 2, or 1 for float "
        "samples (default: accept each, scaled by its own depth)"
    )
    add("--max-wav-value", type=positive_float, help=scale)


def _add_feature_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("what to extract").add_argument
    for option, description in _FLAGS.items():
        add(option, action="store_true", help=description)
    intervals = (
        "what the intervals of TextGrids are: phones, which become the text of --output-meta-file, or the characters "
        "of the transcript, which stays the text"
    )
    add("--input-type", choices=("phone", "char"), default="phone", help=intervals)
    add("--pitch-method", choices=METHODS, default=METHODS[0], help="what estimates pitch of any kind")
    trim = "shorten silence at both ends to this, and drop its symbol with 0; needs TextGrids"
    add("--trim-silence", type=non_negative_float, metavar="SECONDS", help=trim)
    by = (
        "normalize pitch by these statistics, as a validation list by the training list's pitch_char_stats__<list>.json"
    )
    add("--pitch-mean-std-file", type=Path, help=by)


def _add_teacher_arguments(parser: argparse.ArgumentParser) -> None:
    does = "the text-to-mel model whose attention gives durations; mels and text are as its checkpoint says"
    group = parser.add_argument_group("teacher", does)
    add = group.add_argument
    for name, spec in _teachers().items():
        add(option_of(name), type=Path, help=f"checkpoint of {spec.name}, ours or published")
    add_ema_argument(group)
    add("--symbol-set", choices=(*CHARACTER_SETS, *PHONE_SETS), help="instead of the checkpoint's")
    add("--text-cleaners", nargs="*", choices=tuple(CLEANERS), help="instead of the checkpoint's")
    unknown = "symbols that it lacks are dropped from transcripts, with one warning that counts, or refuse them"
    add("--unknown-symbols", choices=UNKNOWN_SYMBOLS, default="drop", help=unknown)


def _architecture_of_generators() -> dict[str, str]:
    """Answers to options that a checkpoint of a text-to-mel model decides."""
    return architecture_options(spec.config for spec in models_with("generator"))


def _teachers() -> dict[str, ModelSpec]:
    """The models whose attention gives durations, by the destination of their option."""
    return {
        f"{spec.option}_checkpoint": spec
        for spec in models_with("generator")
        if isinstance(spec.inference, GeneratorSpec) and spec.inference.teacher is not None
    }


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that do not fit together."""
    taught = [option_of(name) for name in _TAUGHT if getattr(args, name)]
    checkpoints = [name for name in _teachers() if getattr(args, name) is not None]
    alone = [*checkpoints, *(n for n in ("symbol_set", "text_cleaners", "ema") if getattr(args, n) is not None)]
    alone += ["unknown_symbols"] * (args.unknown_symbols != "drop")
    if args.save_alignment_priors and (taught or args.extract_durs_from_textgrids):
        other = taught[0] if taught else "--extract-durs-from-textgrids"
        raise OptionError(f"--save-alignment-priors is for lists without durations, and {other} is not; leave one out")
    if args.save_alignment_priors:
        alone = [name for name in alone if name not in ("symbol_set", "text_cleaners")]
    if alone and not taught:
        raise OptionError(f"{option_of(alone[0])} is only used by {', '.join(map(option_of, _TAUGHT))}")
    if taught and len(checkpoints) != 1:
        instead = "; or use --extract-durs-from-textgrids" if args.extract_durations else ""
        raise OptionError(f"{taught[0]} needs {' or '.join(map(option_of, _teachers()))}{instead}")
    if args.extract_durations and args.extract_durs_from_textgrids:
        raise OptionError("--extract-durations and --extract-durs-from-textgrids: give one of them")
    if taught and args.trim_silence is not None:
        raise OptionError(f"--trim-silence and {taught[0]}: a teacher reads complete recordings; leave one of them out")
    kinds = _wanted_pitch(args)
    if args.pitch_method != METHODS[0] and not (kinds or args.extract_pitch):
        raise OptionError("--pitch-method is for pitch; add --extract-pitch or --extract-pitch-char")
    if not any(getattr(args, option[2:].replace("-", "_")) for option in _FLAGS):
        raise OptionError(
            "nothing to extract: give --extract-mels, --extract-durations, --extract-durs-from-textgrids or "
            "--extract-pitch-char"
        )
    if args.trim_silence is not None and not args.extract_durs_from_textgrids:
        raise OptionError("--trim-silence needs --extract-durs-from-textgrids, which say where the silence is")
    if args.input_type != "phone" and not args.extract_durs_from_textgrids:
        raise OptionError("--input-type says what TextGrids hold; it needs --extract-durs-from-textgrids")
    n_metas, n_lists = len(args.output_meta_file), len(args.wav_text_filelist)
    if n_metas not in (0, n_lists):
        raise OptionError(f"--output-meta-file: {n_metas} files for {n_lists} lists, expected one for each")
    if args.pitch_mean_std_file is not None and len(kinds) != 1:
        raise OptionError("--pitch-mean-std-file: needs exactly one --extract-pitch-..., whose statistics they are")
    if args.peak_norm and hasattr(args, "peak"):
        raise OptionError("--peak-norm and --peak: give one of them")
    if args.cuda and not (args.extract_mels or taught):
        raise OptionError(
            "--cuda: only mel-spectrograms and a teacher's features are made on the GPU; add --extract-mels or leave "
            "it out"
        )
    check_dataset(args)


def check_dataset(args: argparse.Namespace) -> None:
    """Refuse a dataset that does not exist."""
    if not args.dataset_path.is_dir():
        raise InputError(f"{args.dataset_path}: no such folder; --dataset-path holds the wavs")


def _wanted_pitch(args: argparse.Namespace) -> tuple[str, ...]:
    return tuple(kind for kind in KINDS if getattr(args, f"extract_{kind}"))


def open_teacher(args: argparse.Namespace) -> LoadedCheckpoint | None:
    """The teacher's checkpoint with the text front end of the options, where a teacher is needed."""
    given = [(getattr(args, name), spec) for name, spec in _teachers().items() if getattr(args, name) is not None]
    if not given:
        return None
    path, spec = given[0]
    loaded = open_checkpoint(path, model=spec.name, ema=args.ema)
    _check_teacher(loaded)
    if args.ema:
        check_ema([loaded])
    text = loaded.checkpoint.text or TextConfig()
    cleaners = text.cleaners if args.text_cleaners is None else tuple(args.text_cleaners)
    text = replace(text, symbol_set=args.symbol_set or text.symbol_set, cleaners=cleaners)
    return replace(loaded, checkpoint=replace(loaded.checkpoint, text=text))


def _check_teacher(loaded: LoadedCheckpoint) -> None:
    """Refuse an exported file, which speaks and does nothing else."""
    if loaded.exported is not None:
        raise OptionError(f"{loaded.path}: an exported file, which has no teacher forcing; give the checkpoint")


def audio_from_args(args: argparse.Namespace, teacher: LoadedCheckpoint | None = None) -> AudioConfig:
    """The mels that the options describe; a teacher's checkpoint gives what they leave out, and must agree."""
    base = None if teacher is None or hasattr(args, "audio_config") else teacher.checkpoint.audio
    try:
        audio = audio_config_from_args(args, base=base)
        if args.peak_norm:
            audio = replace(audio, peak=PEAK_NORM)
        MelExtractor(audio)  # refuses what cannot be computed
    except InputError as error:
        raise OptionError(str(error)) from error
    if teacher is not None:
        unrecorded = {name: getattr(audio, name) for name in teacher.checkpoint.assumed}
        wanted = replace(teacher.checkpoint.audio, **unrecorded)
        if lines := differences(audio, wanted, names=("options", str(teacher.path))):
            raise OptionError(f"the teacher makes other mel-spectrograms: {'; '.join(lines)}; leave these options out")
    return audio


def plan_from_args(args: argparse.Namespace, teacher: LoadedCheckpoint | None) -> ExtractionPlan:
    """What the options ask for, of the teacher's checkpoint where one is needed."""
    kinds = _wanted_pitch(args)
    durations_from = None
    if args.extract_durations:
        durations_from = FROM_ATTENTION
    elif args.extract_durs_from_textgrids:
        durations_from = FROM_TEXTGRIDS
    elif any(kind != "pitch_mel" for kind in kinds):
        durations_from = FROM_FILES
    identity = None
    if teacher is not None:
        assert teacher.checkpoint.text is not None
        text, ema = teacher.checkpoint.text, teacher.ema
        identity = Teacher(teacher.spec.name, sha256(teacher.path), text, args.unknown_symbols, ema)
    return ExtractionPlan(
        prior_text=_prior_text(args) if args.save_alignment_priors else None,
        **values_of(args, ExtractionPlan),
        audio=audio_from_args(args, teacher),
        mels=args.extract_mels,
        pitch=kinds,
        frame_pitch=args.extract_pitch,
        durations_from=durations_from,
        symbols_are_characters=args.input_type == "char",
        attentions=args.extract_attentions,
        mels_teacher=args.extract_mels_teacher,
        teacher=identity,
    )


def _prior_text(args: argparse.Namespace) -> TextConfig:
    """How transcripts become the symbols of priors; without options as training reads them without options."""
    symbol_set = args.symbol_set or TextConfig().symbol_set
    if symbol_set in PHONE_SETS:
        return TextConfig(input_type="phone", symbol_set=symbol_set, cleaners=())
    cleaners = [ENGLISH_V3] if args.text_cleaners is None else args.text_cleaners
    return TextConfig(symbol_set=symbol_set, cleaners=tuple(cleaners))


def wants_teacher_forcing(argv: Sequence[str] | None) -> bool:
    """Whether a command line asks for a text-to-mel model's own mels."""
    return not names_given(argv).isdisjoint(("--checkpoint", "--checkpoint-path"))


def teacher_forcing_parser() -> ArgumentParser:
    """The options of ``extract_mels.py --checkpoint``."""
    parser = ArgumentParser(
        prog="extract_mels.py",
        description="Make a text-to-mel model's mels of a corpus, teacher-forced, to fine-tune a vocoder on.",
        epilog="Exit status: 0 all clips made, 1 some refused or bad input, 2 wrong options.",
    )
    add = parser.add_argument
    add("--checkpoint", type=Path, required=True, help="checkpoint of a text-to-mel model")
    add("-d", "--dataset-path", type=Path, default=Path(), help="folder that the lists start from")
    lists = parser.add_mutually_exclusive_group(required=True)
    given = "lists as train.py reads them for that model"
    lists.add_argument("--filelist", type=Path, nargs="+", help=given)
    named = "the lists of that name for that model, as scripts/prepare_dataset.sh writes them"
    lists.add_argument("--lists", type=Path, metavar="FOLDER/NAME", help=named)
    add("-o", "--output", type=Path, required=True, help="folder for the mels")
    add_ema_argument(parser)
    add("--resume", action="store_true", help="keep the complete mels of an earlier run")
    add("-bs", "--batch-size", type=positive_int, default=32, help="clips at once")
    add("--num-workers", type=n_loaders, help="loader processes (default: 4 with --cuda, else 0)")
    add_precision_arguments(parser)
    add_options(parser.add_argument_group("text", "the checkpoint's need not be repeated"), FrontEndOptions)
    parser.answer_published(_architecture_of_generators() | TEACHER_FORCING)
    return parser


def parse_teacher_forcing_args(argv: Sequence[str] | None) -> argparse.Namespace:
    """The checked options of ``extract_mels.py --checkpoint``.

    Raises:
        OptionError: two options do not fit together.
    """
    args = teacher_forcing_parser().parse_args(argv)
    if args.p_arpabet not in (None, 0, 1):
        raise OptionError(f"--p-arpabet {args.p_arpabet}: all words of a clip are read as letters (0) or phones (1)")
    if args.filelist and len(set(args.filelist)) < len(args.filelist):
        raise OptionError("--filelist: a list is given twice")
    return args


def teacher_forcing_from_args(args: argparse.Namespace, loaded: LoadedCheckpoint) -> TeacherForcing:
    """What the options of ``extract_mels.py --checkpoint`` ask for, of that checkpoint."""
    _check_teacher(loaded)
    num_workers = 4 * args.cuda if args.num_workers is None else args.num_workers
    options = values_of(args, TeacherForcing) | {"num_workers": num_workers}
    return TeacherForcing(**options, filelists=tuple(args.filelist or _named_lists(args.lists, loaded)))


def _named_lists(prefix: Path, loaded: LoadedCheckpoint) -> list[Path]:
    """The training list of that name, of what the model is trained on, and the validation list if there is one."""
    assert isinstance(loaded.spec.inference, GeneratorSpec)
    config = from_plain(loaded.spec.config, loaded.checkpoint.config, where=str(loaded.path))
    columns = loaded.spec.inference.list_columns(config)
    names = [f"{prefix.name}_{columns}_{split}_filelist.txt" for split in ("train", "val")]
    train, val = (prefix.with_name(name) for name in names)
    if not train.is_file():
        features = " FEATURES=false" if columns == "audio_text" else ""
        raise InputError(
            f"{train}: no such list, which {loaded.path} would be trained on; make it by "
            f"NAME={prefix.name}{features} bash scripts/prepare_dataset.sh, or give --filelist"
        )
    return [train, val] if val.is_file() else [train]
