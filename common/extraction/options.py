"""Options of extract_mels.py: what to extract from recordings, or which mels to make for fine-tuning a vocoder."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from common.audio.options import ESTIMATORS, PITCH_KINDS, AudioOptions, PitchRange
from common.checkpoints.command_line import architecture_answers, models_with
from common.cli import ArgumentParser, ComputingOptions
from common.errors import OptionError
from common.options import add_options, group, option, option_of
from common.pages.tables import read_table
from common.registry import ModelSpec
from common.text.cleaners import CLEANERS
from common.text.options import TextOverrides
from common.text.symbols import CHARACTER_SETS, PHONE_SETS

_PEAK_NORM = 32767 / 32768  # the largest 16-bit sample, as the original scales to
FRAME_PITCH = "pitch"  # folder of pitch in Hz, one value per frame, for training with a learned alignment
_EMA = "use the EMA weights, or the raw ones (default: EMA weights if there are any)"
HERTZ = "_hz"  # pitch_char_hz/ holds pitch in Hz; pitch_char/ the same, normalized over the list


@dataclass(frozen=True)
class CorpusOptions:
    """The recordings and transcripts to read, and how many processes read them."""

    dataset_path: Path = option(Path(), "folder that the lists' paths start from", names=("-d",))
    wav_text_filelist: tuple[Path, ...] = option(
        (),
        "lists of wavs/a.wav|text[|speaker]; the first one's pitch statistics normalize them all",
        required=True,
        published=("--wav-text-filelists", "--wav-files"),
    )
    num_workers: int | None = option(None, "processes (default: cores)", least=1, most=1024, published=("--n-workers",))


@dataclass(frozen=True)
class FeatureOptions(PitchRange):
    """What to extract from each recording."""

    extract_mels: bool = option(False, "mel-spectrograms, into mels/")
    extract_durations: bool = option(False, "durations of symbols, from a teacher's attention, into durations/")
    extract_attentions: bool = option(False, "the teacher's attention, tensors (frames, symbols), into attentions/")
    extract_mels_teacher: bool = option(False, "the teacher's mels under teacher forcing, into mels_teacher/")
    extract_durs_from_textgrids: bool = option(False, "durations of the phones in TextGrid/a.TextGrid, into durations/")
    extract_pitch_mel: bool = option(False, "pitch of each mel frame, into pitch_mel/ (in Hz: pitch_mel_hz/)")
    extract_pitch_char: bool = option(False, "pitch of each symbol, into pitch_char/ (in Hz: pitch_char_hz/)")
    extract_pitch_trichar: bool = option(False, "pitch of each third of a symbol, into pitch_trichar/, likewise")
    extract_pitch: bool = option(False, "pitch of each mel frame in Hz, into pitch/, for --learned-alignment")
    output_meta_file: tuple[Path, ...] = option(
        (), "training lists to write, one for each --wav-text-filelist", published=("--mel-files",), writes=True
    )
    input_type: str = option("phone", "what an interval of a TextGrid holds", choices=("phone", "char"))
    pitch_method: str = option(ESTIMATORS[0], "pitch estimator", choices=ESTIMATORS, published=("--f0-method",))
    trim_silence: float | None = option(
        None, "silence to keep at both ends of TextGrids; 0 drops its symbol too", least=0, most=3600, metavar="SECONDS"
    )
    pitch_mean_std_file: Path | None = option(None, "normalize pitch by these statistics, pitch_char_stats__LIST.json")
    cuda: bool = option(False, "run the teacher on the GPU")
    resume: bool = option(False, "keep the complete files of an earlier run")


@dataclass(frozen=True)
class TeacherOptions:
    """How the teacher reads text."""

    ema: bool | None = option(None, _EMA)
    symbol_set: str | None = option(None, "instead of the checkpoint's", choices=(*CHARACTER_SETS, *PHONE_SETS))
    text_cleaners: tuple[str, ...] | None = option(None, "instead of the checkpoint's", choices=CLEANERS, empty=True)
    unknown_symbols: str = option(
        "drop", "drop symbols that it lacks, with a warning that counts them, or refuse them", choices=("drop", "error")
    )


@dataclass(frozen=True)
class ExtractionOptions(CorpusOptions, FeatureOptions, TeacherOptions):
    """What to extract from a corpus."""

    @property
    def pitch(self) -> tuple[str, ...]:
        """Kinds of pitch, each averaged and normalized."""
        return tuple(kind for kind in PITCH_KINDS if getattr(self, f"extract_{kind}"))

    @property
    def taught(self) -> tuple[str, ...]:
        """Folders whose files a teacher makes."""
        folders = ("durations", "attentions", "mels_teacher")
        return tuple(folder for folder in folders if getattr(self, f"extract_{folder}"))

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders that the run writes, in the dataset's folder."""
        names = ["mels"] * self.extract_mels + ["durations"] * self.extract_durs_from_textgrids + [*self.taught]
        names += [FRAME_PITCH] * self.extract_pitch
        return (*names, *(kind + HERTZ for kind in self.pitch), *self.pitch)

    @property
    def reads_durations(self) -> bool:
        """Whether durations from an earlier run, or from other tools, are read from durations/."""
        return "durations" not in self.folders and any(kind != "pitch_mel" for kind in self.pitch)

    def check(self) -> None:
        """Raise OptionError if options don't fit together."""
        of_teacher = [option_of(f"extract_{folder}") for folder in self.taught]
        grids, n_metas = "--extract-durs-from-textgrids", len(self.output_meta_file)
        if not self.folders:
            raise OptionError(f"nothing to extract: give --extract-mels, --extract-durations, {grids}, ...-pitch-char")
        if self.extract_durs_from_textgrids and self.extract_durations:
            raise OptionError(f"--extract-durations and {grids}: give one of them")
        if self.trim_silence is not None and (of_teacher or not self.extract_durs_from_textgrids):
            raise OptionError(f"--trim-silence needs {grids}, and no {[*of_teacher, 'teacher'][0]}")
        if n_metas not in (0, len(self.wav_text_filelist)):
            raise OptionError(f"--output-meta-file: {n_metas} files for {len(self.wav_text_filelist)} lists")


@dataclass(frozen=True)
class TeacherForcingOptions:
    """The mels to make with a teacher-forced text-to-mel model."""

    checkpoint: Path | None = option(
        None, "checkpoint of a text-to-mel model", required=True, published=("--checkpoint-path",)
    )
    dataset_path: Path = option(Path(), "folder that the lists' paths start from", names=("-d",))
    filelist: tuple[Path, ...] = option((), "lists for train.py", published=("--dataset-files",))
    lists: Path | None = option(
        None, "instead: the lists that scripts/prepare_dataset.sh wrote under this name", metavar="FOLDER/NAME"
    )
    output: Path | None = option(None, "folder for the mels", names=("-o",), required=True, writes=True)
    ema: bool | None = option(None, _EMA)
    resume: bool = option(False, "keep the complete mels of an earlier run")
    batch_size: int = option(32, "clips in a batch", least=1, names=("-bs",))
    num_workers: int | None = option(None, "loader processes (default: 4 with --cuda, else 0)", least=0, most=1024)
    computing: ComputingOptions = group(ComputingOptions, "computing")
    unknown_symbols: str = "drop"  # an option of the voice's text front end

    def __post_init__(self) -> None:
        if bool(self.filelist) == (self.lists is not None):
            raise OptionError("give one of --filelist and --lists")


def extraction_parser() -> ArgumentParser:
    """Return the parser for extracting features from recordings."""
    parser = ArgumentParser(
        description="Extract mel-spectrograms, durations and pitch of the recordings in a list.",
        epilog="Exit status: 0 all utterances made, 1 some refused or bad input, 2 wrong options. To make a "
        "text-to-mel model's mels for fine-tuning a vocoder, see --checkpoint FILE --help.",
    )
    add_options(parser, CorpusOptions, title="data")
    add_options(parser, FeatureOptions, title="what to extract")
    does = "the text-to-mel model whose attention gives durations; its checkpoint determines mels and text"
    group = parser.add_argument_group("teacher", does)
    for name, spec in _teachers().items():
        group.add_argument(option_of(name), type=Path, help=f"checkpoint of {spec.name}, ours or published")
    add_options(group, TeacherOptions)
    add_mel_options(parser)
    parser.answer_published(architecture_answers(models_with("generator")) | _removed("recordings"))
    return parser


def _removed(command: str) -> dict[str, str]:
    """Options of the originals that no longer exist, and what to do."""
    return {row["option"]: row["answer"] for row in read_table("extraction/removed.tsv") if row["command"] == command}


def add_mel_options(parser: ArgumentParser) -> None:
    """Add the options that describe mel-spectrograms, as `common.audio.options.AudioOptions` reads them."""
    about = "settings of the mel-spectrograms; by default the value in brackets, or one that suits --sampling-rate"
    group = parser.add_argument_group("audio", about)
    add_options(group, AudioOptions)
    text = f"the same as --peak {_PEAK_NORM:.6f}"
    group.add_argument("--peak-norm", dest="peak", action="store_const", const=_PEAK_NORM, help=text)


def _teachers() -> dict[str, ModelSpec]:
    """Return the models whose attention gives durations, by the destination of their option."""
    return {f"{spec.option}_checkpoint": spec for spec in models_with("generator") if spec.is_teacher}


def chosen_teacher(args: argparse.Namespace, options: ExtractionOptions) -> tuple[str, Path] | None:
    """Return the model of the teacher that ``options`` need, and its checkpoint's path; None if they need none.

    Raises OptionError if they need a teacher and none or several are given.
    """
    given = [(spec.name, getattr(args, name)) for name, spec in _teachers().items() if getattr(args, name) is not None]
    if not options.taught:
        return None
    if len(given) != 1:
        wanted = f"{option_of(f'extract_{options.taught[0]}')} needs {' or '.join(map(option_of, _teachers()))}"
        raise OptionError(wanted + "; or use --extract-durs-from-textgrids" * options.extract_durations)
    return given[0]


def teacher_forcing_parser() -> ArgumentParser:
    """Return the parser of ``extract_mels.py --checkpoint``."""
    parser = ArgumentParser(
        prog="extract_mels.py",
        description="Make a corpus's mels with a teacher-forced text-to-mel model, to fine-tune a vocoder on.",
        epilog="Exit status: 0 all clips made, 1 some refused or bad input, 2 wrong options.",
    )
    add_options(parser, TeacherForcingOptions)
    add_options(parser, TextOverrides, title="text")
    parser.answer_published(architecture_answers(models_with("generator")) | _removed("checkpoint"))
    return parser
