"""The features of one utterance, which extract_mels.py checks, makes, keeps and normalizes for each line of a list."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from common.audio.mel import MelExtractor
from common.audio.pitch import TRICHAR_PARTS, PitchStatistics, estimate_pitch, normalize, pitch_of_kind
from common.audio.wav import check_wav, load_wav
from common.config import AudioConfig
from common.data.features import feature_name, frames_of_tokens
from common.errors import AudioError, InputError, OutputError
from common.extraction.options import FRAME_PITCH, HERTZ, ExtractionOptions
from common.extraction.textgrid import fit, read_alignment, trim_silence
from common.files import write_atomically, writing
from common.text.front_end import TextFrontEnd
from common.text.ssml import Span
from common.text.teacher import StoredTeacher
from common.torch_file import load_tensor, save_tensor


@dataclass(frozen=True)
class ExtractionPlan:
    """What to extract from a corpus, and how: the options, the corpus's settings and a teacher."""

    options: ExtractionOptions
    audio: AudioConfig
    teacher: StoredTeacher | None = None  # makes the folders `ExtractionOptions.taught`

    def path(self, folder: str, name: str) -> Path:
        """Return the path of a feature of the utterance ``name``."""
        return self.options.dataset_path / folder / f"{name}.pt"


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
        return feature_name(self.wav)


@dataclass(frozen=True)
class Extraction:
    """The state of an utterance in the run: its properties, the features made, or why it was refused."""

    utterance: Utterance
    text: str = ""  # for the new list: the transcript, or the phones of a TextGrid
    n_samples: int = 0
    durations: np.ndarray | None = None  # (L,) frames, of the complete recording
    kept_symbols: tuple[int, int] = (0, 0)  # first and one past the last that remain after trimming
    kept_frames: tuple[int, int] = (0, 0)  # first and one past the last that remain after trimming
    end: float | None = None  # s, end of the TextGrid, where pitch estimation stops; None: the recording's end
    tokens: tuple[int, ...] = ()  # ids for the teacher
    dropped: Counter[str] = field(default_factory=Counter)  # symbols of the transcript that its symbol set lacks
    made: tuple[str, ...] = ()  # folders
    kept: tuple[str, ...] = ()  # folders whose file of an earlier run is complete
    pitches: dict[str, np.ndarray] = field(default_factory=dict)  # kind of pitch -> values, Hz
    refusal: str | None = None

    @property
    def kept_durations(self) -> np.ndarray:
        """(L',) frames of the symbols that remain, after trimming."""
        assert self.durations is not None
        first, last = self.kept_frames
        ends = np.clip(np.cumsum(self.durations), first, last)
        return np.diff(ends, prepend=first)[slice(*self.kept_symbols)]


mel_extractor = lru_cache(maxsize=1)(MelExtractor)  # one per process
text_front_end = lru_cache(maxsize=1)(TextFrontEnd)  # likewise


def attempt(
    item: Extraction, plan: ExtractionPlan, *, function: Callable[[Extraction, ExtractionPlan], Extraction]
) -> Extraction:
    """Return ``function(item, plan)``, for `prepare` or `extract`; a bad utterance is refused, without new files."""
    if item.refusal is not None:
        return item
    try:
        with torch.inference_mode():
            return function(item, plan)
    except OutputError:  # the next one would fail too
        raise
    except InputError as error:
        return replace(item, refusal=str(error))


def prepare(item: Extraction, plan: ExtractionPlan) -> Extraction:
    """Run the checks that don't need an utterance's samples; raises InputError."""
    utterance, options = item.utterance, plan.options
    if not utterance.text:
        raise InputError(f"{utterance.wav}: the transcript is empty")
    wav = options.dataset_path / utterance.wav
    info = check_wav(wav, sampling_rate=plan.audio.sampling_rate)
    extractor = mel_extractor(plan.audio)
    if info.n_samples < extractor.min_samples:
        raise AudioError(f"{wav}: {info.n_samples} samples: too short, a frame needs {extractor.min_samples}")
    n_frames = extractor.n_frames(info.n_samples)
    item = replace(item, text=utterance.text, n_samples=info.n_samples, kept_frames=(0, n_frames))
    if plan.teacher is not None:
        front_end = text_front_end(plan.teacher.text.of_transcripts, unknown_symbols=plan.teacher.unknown_symbols)
        words = front_end.encode_words([Span(item.text)])
        item = replace(item, tokens=words.ids, dropped=words.dropped, kept_symbols=(0, len(words.ids)))
    if options.extract_durs_from_textgrids:
        item = _with_alignment(item, plan)
    elif options.reads_durations:
        path = plan.path("durations", utterance.name)
        if not path.is_file():
            raise InputError(f"{path}: no such file; give --extract-durs-from-textgrids or --extract-durations")
        source = "the recording (was its silence trimmed?)"
        durations = frames_of_tokens(load_tensor(path), n_frames, name=str(path), frames_of=source)
        item = with_durations(item, durations.numpy())
    return _with_kept(item, plan) if options.resume else item


def _with_kept(item: Extraction, plan: ExtractionPlan) -> Extraction:
    """Return the item with the folders whose files from an earlier run can be kept."""
    options = plan.options
    n_frames, n_symbols = (last - first for first, last in (item.kept_frames, item.kept_symbols))
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("mels", "mels_teacher"), (plan.audio.n_mels, n_frames)),
        "attentions": (n_frames, len(item.tokens)),
        **dict.fromkeys((FRAME_PITCH, "pitch_mel" + HERTZ), (n_frames,)),
        **dict.fromkeys(("durations", "pitch_char" + HERTZ), (n_symbols,)),
        "pitch_trichar" + HERTZ: (TRICHAR_PARTS * n_symbols,),
    }
    folders = [one for one in options.folders if one in shapes]
    found = {one: read_complete(plan.path(one, item.utterance.name), shapes[one]) for one in folders}
    kept, durations = [one for one in folders if found[one] is not None], found.get("durations")
    if "durations" in options.taught:
        if durations is not None and int(durations.sum()) == n_frames:
            item = with_durations(item, durations.numpy())
        else:  # averages over them are remade, too
            kept = [one for one in kept if not one.startswith(("durations", "pitch_char", "pitch_trichar"))]
    elif durations is not None and not np.array_equal(durations.numpy(), item.kept_durations):
        kept = []  # the TextGrid has changed, and so has everything that was cut or averaged with it
    return replace(item, kept=tuple(kept))


def with_durations(item: Extraction, durations: np.ndarray) -> Extraction:
    """Return the item with ``durations`` (L,) of the complete recording, untrimmed."""
    return replace(item, durations=durations, kept_symbols=(0, len(durations)))


def _with_alignment(item: Extraction, plan: ExtractionPlan) -> Extraction:
    options = plan.options
    path = options.dataset_path / "TextGrid" / f"{item.utterance.name}.TextGrid"
    alignment = fit(read_alignment(path, plan.audio), item.kept_frames[1], path=path, config=plan.audio)
    symbols, frames = (0, len(alignment.phones)), item.kept_frames
    if options.trim_silence is not None:
        symbols, frames = trim_silence(alignment, options.trim_silence, plan.audio)
    phones, text = alignment.phones[slice(*symbols)], item.text
    if frames[0] == frames[1]:
        raise InputError(f"{path}: no frame is left after trimming the silence at its ends")
    if options.input_type == "phone":
        text = " ".join(phones)
    elif len(phones) != len(text):
        raise InputError(
            f"{path}: {len(phones)} intervals, the transcript has {len(text)} characters; with --input-type "
            "char, each character, even a space, needs its own interval"
        )
    durations = np.array(alignment.durations)
    return replace(item, text=text, durations=durations, kept_symbols=symbols, kept_frames=frames, end=alignment.end)


def extract(item: Extraction, plan: ExtractionPlan) -> Extraction:
    """Make the missing features of an utterance; raises InputError."""
    options = plan.options
    wave = cache(lambda: load_item(item, plan))
    n_frames = mel_extractor(plan.audio).n_frames(item.n_samples)  # of the complete recording
    part = None if item.end is None else (0.0, item.end)
    estimate = partial(estimate_pitch, method=options.pitch_method, pitch_range=options.pitch_range, part=part)
    pitch = cache(lambda: estimate(wave().numpy(), plan.audio, n_frames=n_frames))  # (F,) Hz

    def make(folder: str) -> Tensor:
        if folder == "durations":
            return torch.from_numpy(item.kept_durations)
        if folder == "mels":
            return mel_extractor(plan.audio)(wave()[None])[0, :, slice(*item.kept_frames)]
        if folder == FRAME_PITCH:
            return torch.from_numpy(pitch()[slice(*item.kept_frames)]).float()
        kind = folder.removesuffix(HERTZ)
        first, last = item.kept_frames if kind == "pitch_mel" else item.kept_symbols
        parts = TRICHAR_PARTS if kind == "pitch_trichar" else 1
        return torch.from_numpy(pitch_of_kind(kind, pitch(), item.durations)[first * parts : last * parts])

    done = {*item.kept, *options.taught, *options.pitch}
    new = {folder: make(folder) for folder in options.folders if folder not in done}
    for folder, tensor in new.items():
        write_feature(plan.path(folder, item.utterance.name), tensor)
    if options.extract_durs_from_textgrids:  # training reads the phones next to the durations
        text = plan.path("durations", item.utterance.name).with_suffix(".txt")
        write_atomically(text, lambda file: file.write(item.text.encode()), durable=False)
    pitches = {kind: load_tensor(plan.path(kind + HERTZ, item.utterance.name)).numpy() for kind in options.pitch}
    return replace(item, made=(*item.made, *new), pitches=pitches)


def load_item(item: Extraction, plan: ExtractionPlan) -> Tensor:
    """Load the samples (T,) of a prepared utterance."""
    wav = plan.options.dataset_path / item.utterance.wav
    return load_wav(wav, sampling_rate=plan.audio.sampling_rate)


def read_complete(path: Path, shape: tuple[int, ...]) -> Tensor | None:
    """Load a tensor of an earlier run; None if it's missing, truncated (by a power cut), not finite or misshapen."""
    try:
        tensor = load_tensor(path)
    except InputError:
        return None
    return tensor if tensor.shape == shape and torch.isfinite(tensor).all() else None


def write_feature(path: Path, tensor: Tensor) -> None:
    """Write a tensor; a power cut may lose the newest files. Raises OutputError with a hint."""
    with writing(path, "; run the same command again with --resume, which keeps complete files"):
        save_tensor(path, tensor, durable=False)


def normalize_pitch(name: str, plan: ExtractionPlan, *, by: dict[str, PitchStatistics]) -> None:
    """Write the normalized pitch of one utterance, from its pitch in Hz."""
    for kind in plan.options.pitch:
        values = load_tensor(plan.path(kind + HERTZ, name)).float().numpy()
        write_feature(plan.path(kind, name), torch.from_numpy(normalize(values, by[kind])))
