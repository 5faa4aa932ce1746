"""The features of one utterance: what extract_mels.py checks, makes, keeps and normalizes for each line of a list."""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath

import numpy as np
import torch
from torch import Tensor

from common.audio.mel import MelExtractor
from common.audio.pitch import (
    SHORTEST,
    TRICHAR_PARTS,
    PitchMoments,
    moments,
    normalize,
    pitch_by,
    pitch_of_kind,
)
from common.audio.pitch_statistics import PitchStatistics
from common.audio.wav import check_wav, load_wav
from common.config import AudioConfig, TextConfig, to_plain
from common.errors import AudioError, InputError
from common.extraction.textgrid import TextGridAlignment, fit, read_alignment, trim_silence
from common.files import load_tensor, save_tensor
from common.text.front_end import TextFrontEnd

FROM_TEXTGRIDS = "TextGrids"
FROM_ATTENTION = "attention"  # of the plan's teacher
FROM_FILES = "files"  # made by an earlier run, or by other tools
FRAME_PITCH = "pitch"  # folder of ExtractionPlan.frame_pitch
HERTZ = "_hz"  # pitch_char_hz/ holds pitch in Hz; pitch_char/ the same, normalized over the list
_OF_FRAMES = ("mels", "pitch_mel" + HERTZ, FRAME_PITCH)  # folders that do not depend on durations


@dataclass(frozen=True)
class Teacher:
    """The text-to-mel model whose attention gives durations: which one, and how it reads transcripts."""

    model: str
    sha256: str  # of its checkpoint
    text: TextConfig
    unknown_symbols: str = "error"  # in a transcript: it is refused, or "drop"

    def to_plain(self) -> dict[str, object]:
        """What is stored with the files that it made."""
        return {"model": self.model, "sha256": self.sha256, "text": to_plain(self.text)}


@dataclass(frozen=True)
class ExtractionPlan:
    """What to extract from a corpus, and how."""

    dataset_path: Path
    audio: AudioConfig
    mels: bool = False
    pitch: tuple[str, ...] = ()  # of pitch.KINDS
    frame_pitch: bool = False  # in Hz, as a learned alignment trains on it
    pitch_method: str = "praat"  # of pitch.METHODS, for every kind of pitch
    durations_from: str | None = None
    symbols_are_characters: bool = False  # intervals of a TextGrid are its transcript's characters, not phones
    trim_silence: float | None = None  # s kept at each end; None: everything
    max_wav_value: float | None = None
    resume: bool = False
    attentions: bool = False  # of the teacher
    mels_teacher: bool = False  # of the teacher, under teacher forcing
    teacher: Teacher | None = None  # needed for these two and for FROM_ATTENTION
    mels_by_workers: bool = True  # False: the mels are made on the GPU, in one process

    @property
    def taught(self) -> tuple[str, ...]:
        """Folders whose files the teacher makes."""
        names = ["durations"] * (self.durations_from == FROM_ATTENTION) + ["attentions"] * self.attentions
        return (*names, *["mels_teacher"] * self.mels_teacher)

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders that the run writes, in the dataset's folder."""
        names = ["mels"] * self.mels + ["durations"] * (self.durations_from == FROM_TEXTGRIDS) + [*self.taught]
        return (*names, *(kind + HERTZ for kind in self.pitch), *self.pitch, *[FRAME_PITCH] * self.frame_pitch)

    def path(self, folder: str, name: str) -> Path:
        """Where a feature of the utterance ``name`` lies."""
        return self.dataset_path / folder / f"{name}.pt"


@dataclass(frozen=True)
class Utterance:
    """One line of a list."""

    index: int  # over all lists
    list_index: int
    wav: str  # relative to the dataset's folder
    text: str
    speaker: str | None
    where: str  # "list.txt:7"

    @property
    def name(self) -> str:
        """Path of every feature inside its folder: ``wavs/speaker/a.wav`` -> ``speaker/a``."""
        path = PurePosixPath(self.wav)
        return PurePosixPath(*(path.parts[1:] or path.parts)).with_suffix("").as_posix()


@dataclass(frozen=True)
class Prepared:
    """A checked utterance, ready for the work, or the reason why it was refused."""

    utterance: Utterance
    text: str = ""  # the phones, where a TextGrid gave them
    n_samples: int = 0
    durations: np.ndarray | None = None  # (L,) frames, of the complete recording
    kept_durations: np.ndarray | None = None  # (L',) frames, after trimming
    kept_symbols: tuple[int, int] = (0, 0)  # first and one past the last of ``durations`` that remain
    kept_frames: tuple[int, int] = (0, 0)  # first and one past the last that remain
    tokens: tuple[int, ...] = ()  # ids that the teacher reads
    dropped: tuple[str, ...] = ()  # symbols of the transcript that its symbol set lacks
    teacher_made: tuple[str, ...] = ()  # folders whose file the teacher has made
    teacher_kept: tuple[str, ...] = ()  # folders whose file of an earlier run is complete
    refusal: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What was made of an utterance."""

    utterance: Utterance
    text: str = ""  # for the new list
    made: tuple[str, ...] = ()  # folders
    kept: tuple[str, ...] = ()  # folders whose file was complete already
    moments: dict[str, PitchMoments] = field(default_factory=dict)  # kind of pitch ->
    seconds: float = 0.0  # of speech
    refusal: str | None = None


mel_extractor = lru_cache(maxsize=1)(MelExtractor)  # this process's


@lru_cache(maxsize=1)
def text_front_end(config: TextConfig, unknown_symbols: str) -> TextFrontEnd:
    """This process's reader of transcripts."""
    return TextFrontEnd(config, unknown_symbols=unknown_symbols)


def prepare(utterance: Utterance, plan: ExtractionPlan) -> Prepared:
    """Check what can be checked without reading the samples of an utterance."""
    try:
        return _prepare(utterance, plan)
    except InputError as error:
        return Prepared(utterance, refusal=reason(error, plan))


def _prepare(utterance: Utterance, plan: ExtractionPlan) -> Prepared:
    if not utterance.text:
        raise InputError(f"{utterance.wav}: the transcript is empty")
    wav = plan.dataset_path / utterance.wav
    info = check_wav(wav, sampling_rate=plan.audio.sampling_rate, max_wav_value=plan.max_wav_value)
    extractor = mel_extractor(plan.audio)
    if info.n_samples < extractor.min_samples:
        raise AudioError(f"{wav}: {info.n_samples} samples: too short, a frame needs {extractor.min_samples}")
    if (plan.pitch or plan.frame_pitch) and info.n_samples < SHORTEST * info.sampling_rate:
        raise AudioError(f"{wav}: {info.n_samples / info.sampling_rate:.3f} s: too short, pitch needs {SHORTEST:.3f} s")
    n_frames = extractor.n_frames(info.n_samples)
    item = Prepared(utterance, text=utterance.text, n_samples=info.n_samples, kept_frames=(0, n_frames))
    if plan.taught:
        item = _with_tokens(item, plan)
    if plan.durations_from == FROM_TEXTGRIDS:
        path = plan.dataset_path / "TextGrid" / f"{utterance.name}.TextGrid"
        alignment = fit(read_alignment(path, plan.audio), n_frames, path=path, config=plan.audio)
        return _with_alignment(item, alignment, plan, path)
    if plan.durations_from == FROM_FILES:
        durations = _read_durations(plan.path("durations", utterance.name), n_frames)
        return with_durations(item, durations)
    return item


def _with_tokens(item: Prepared, plan: ExtractionPlan) -> Prepared:
    """With the ids of the transcript, and what an earlier run of the teacher made of them."""
    assert plan.teacher is not None
    front_end = text_front_end(plan.teacher.text, plan.teacher.unknown_symbols)
    front_end.dropped.clear()
    tokens = tuple(front_end.encode(item.text))
    item = replace(item, tokens=tokens, dropped=tuple(front_end.dropped.elements()))
    if not plan.resume:
        return item
    n_tokens, n_frames = len(tokens), item.kept_frames[1]
    shapes = {
        "durations": (n_tokens,),
        "attentions": (n_frames, n_tokens),
        "mels_teacher": (plan.audio.n_mels, n_frames),
    }
    kept = _read_complete({folder: shapes[folder] for folder in plan.taught}, item, plan)
    if "durations" in kept and int(kept["durations"].sum()) != n_frames:
        del kept["durations"]
    item = replace(item, teacher_kept=tuple(kept))
    return with_durations(item, kept["durations"].numpy()) if "durations" in kept else item


def with_durations(item: Prepared, durations: np.ndarray) -> Prepared:
    """With ``durations`` (L,) of the complete recording, nothing of which is cut."""
    return replace(item, durations=durations, kept_durations=durations, kept_symbols=(0, len(durations)))


def _with_alignment(item: Prepared, alignment: TextGridAlignment, plan: ExtractionPlan, path: Path) -> Prepared:
    durations = np.array(alignment.durations)
    kept = alignment
    symbols, frames = (0, len(durations)), item.kept_frames
    if plan.trim_silence is not None:
        trimmed = trim_silence(alignment, plan.trim_silence, plan.audio)
        kept = trimmed.alignment
        symbols, frames = trimmed.phones, trimmed.frames
    if kept.n_frames == 0:
        raise InputError(f"{path}: no frame is left without the silence at its ends")
    if plan.symbols_are_characters and len(kept.phones) != len(item.text):
        raise InputError(
            f"{path}: {len(kept.phones)} intervals, the transcript has {len(item.text)} characters; with --input-type "
            "char each character, spaces too, needs an interval of its own"
        )
    return replace(
        item,
        text=item.text if plan.symbols_are_characters else " ".join(kept.phones),
        durations=durations,
        kept_durations=np.array(kept.durations),
        kept_symbols=symbols,
        kept_frames=frames,
    )


def _read_durations(path: Path, n_frames: int) -> np.ndarray:
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; durations come from --extract-durs-from-textgrids or --extract-durations"
        )
    durations = load_tensor(path)
    if durations.ndim != 1 or not torch.equal(durations, durations.round()) or bool((durations < 0).any()):
        raise InputError(f"{path}: expected a row of whole numbers of frames")
    if int(durations.sum()) != n_frames:
        raise InputError(
            f"{path}: {int(durations.sum())} frames, the recording has {n_frames}; was its silence trimmed?"
        )
    return durations.long().numpy()


def extract(item: Prepared, plan: ExtractionPlan) -> Outcome:
    """Make the missing features of an utterance; a bad one is refused and leaves nothing new."""
    try:
        with torch.inference_mode():
            return _extract(item, plan)
    except InputError as error:
        return Outcome(item.utterance, refusal=reason(error, plan))


def _extract(item: Prepared, plan: ExtractionPlan) -> Outcome:
    name = item.utterance.name
    kept = _kept_files(item, plan) if plan.resume else {}
    missing = [folder for folder in _shapes(item, plan) if folder not in kept]
    new: dict[str, Tensor] = {}
    if "durations" in missing:
        new["durations"] = torch.from_numpy(item.kept_durations)
    kinds = [kind for kind in plan.pitch if kind + HERTZ in missing]
    needs_pitch = bool(kinds) or FRAME_PITCH in missing
    if needs_pitch or ("mels" in missing and plan.mels_by_workers):
        wave = load_item(item, plan)
        if "mels" in missing and plan.mels_by_workers:
            first, last = item.kept_frames
            new["mels"] = mel_extractor(plan.audio)(wave[None])[0, :, first:last]
        if needs_pitch:
            made = _pitch(item, plan, wave, kinds)
            new.update({folder: values for folder, values in made.items() if folder in missing})
    for folder, tensor in new.items():
        save_tensor(plan.path(folder, name), tensor, durable=False)
    pitches = {kind: (new if kind in kinds else kept)[kind + HERTZ] for kind in plan.pitch}
    return Outcome(
        item.utterance,
        text=item.text,
        made=(*item.teacher_made, *new),
        kept=(*item.teacher_kept, *kept),
        moments={kind: moments(values.numpy()) for kind, values in pitches.items()},
        seconds=item.n_samples / plan.audio.sampling_rate,
    )


def load_item(item: Prepared, plan: ExtractionPlan) -> Tensor:
    """The samples of a prepared utterance, (T,)."""
    wav = plan.dataset_path / item.utterance.wav
    wave = load_wav(wav, sampling_rate=plan.audio.sampling_rate, max_wav_value=plan.max_wav_value)
    if len(wave) != item.n_samples:
        raise AudioError(f"{wav}: it changed from {item.n_samples} to {len(wave)} samples during the run")
    return wave


def _pitch(item: Prepared, plan: ExtractionPlan, wave: Tensor, kinds: list[str]) -> dict[str, Tensor]:
    """Pitch in Hz of each kind, averaged over all symbols of the recording, then cut to those that remain."""
    n_frames = mel_extractor(plan.audio).n_frames(item.n_samples)
    pitch = pitch_by(plan.pitch_method, wave.numpy(), plan.audio, n_frames=n_frames)
    result = {}
    if plan.frame_pitch:
        first, last = item.kept_frames
        result[FRAME_PITCH] = torch.from_numpy(pitch[first:last]).float()
    for kind in kinds:
        first, last = item.kept_frames if kind == "pitch_mel" else item.kept_symbols
        parts = TRICHAR_PARTS if kind == "pitch_trichar" else 1
        result[kind + HERTZ] = torch.from_numpy(
            pitch_of_kind(kind, pitch, item.durations)[first * parts : last * parts]
        )
    return result


def _shapes(item: Prepared, plan: ExtractionPlan) -> dict[str, tuple[int, ...]]:
    """Folder -> shape of its file, for everything that does not depend on the other utterances."""
    n_frames = item.kept_frames[1] - item.kept_frames[0]
    n_symbols = item.kept_symbols[1] - item.kept_symbols[0]
    lengths = {"pitch_mel": n_frames, "pitch_char": n_symbols, "pitch_trichar": TRICHAR_PARTS * n_symbols}
    shapes: dict[str, tuple[int, ...]] = {kind + HERTZ: (lengths[kind],) for kind in plan.pitch}
    if plan.frame_pitch:
        shapes[FRAME_PITCH] = (n_frames,)
    if plan.durations_from == FROM_TEXTGRIDS:
        shapes["durations"] = (n_symbols,)
    if plan.mels:
        shapes["mels"] = (plan.audio.n_mels, n_frames)
    return shapes


def _kept_files(item: Prepared, plan: ExtractionPlan) -> dict[str, Tensor]:
    """Folder -> contents of the files of an earlier run that need not be made again."""
    shapes = _shapes(item, plan)
    if "durations" in item.teacher_made:  # then what is averaged by them is recomputed
        shapes = {folder: shape for folder, shape in shapes.items() if folder in _OF_FRAMES}
    kept = _read_complete(shapes, item, plan)
    durations, wanted = kept.get("durations"), item.kept_durations
    if durations is not None and wanted is not None and not np.array_equal(durations.numpy(), wanted):
        return {}  # the TextGrid has changed, and with it everything that was cut or averaged by it
    return kept


def _read_complete(shapes: dict[str, tuple[int, ...]], item: Prepared, plan: ExtractionPlan) -> dict[str, Tensor]:
    """Folder -> contents, for each folder whose file of ``item`` is complete."""
    tensors = {folder: read_complete(plan.path(folder, item.utterance.name), shape) for folder, shape in shapes.items()}
    return {folder: tensor for folder, tensor in tensors.items() if tensor is not None}


def read_complete(path: Path, shape: tuple[int, ...]) -> Tensor | None:
    """A tensor of an earlier run; None if it is absent, truncated (by a power cut), not finite or of another shape."""
    try:
        tensor = load_tensor(path) if path.is_file() else None
    except InputError:
        return None
    return tensor if tensor is not None and tensor.shape == shape and bool(torch.isfinite(tensor).all()) else None


def write_feature(path: Path, tensor: Tensor) -> None:
    """Write a tensor; raises InputError where that is impossible."""
    try:
        save_tensor(path, tensor, durable=False)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error


def mels_are_missing(outcome: Outcome, plan: ExtractionPlan) -> bool:
    """Whether the GPU still has to make the mel-spectrogram of an utterance after the workers."""
    return plan.mels and outcome.refusal is None and "mels" not in (*outcome.made, *outcome.kept)


def normalize_pitch(name: str, plan: ExtractionPlan, *, by: dict[str, PitchStatistics]) -> None:
    """Write the normalized pitch of one utterance, from its pitch in Hz."""
    for kind in plan.pitch:
        values = load_tensor(plan.path(kind + HERTZ, name)).numpy()
        save_tensor(plan.path(kind, name), torch.from_numpy(normalize(values, by[kind])), durable=False)


def reason(error: InputError, plan: ExtractionPlan) -> str:
    """An error's line, its path as the list has it."""
    return str(error).removeprefix(f"{plan.dataset_path}/")
