"""What a voice that finds its own alignment hears: mels with the pitch of each frame, stored or made anew."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torch import Tensor

from common.audio.mel import MelExtractor
from common.audio.pitch_cache import PitchCache
from common.audio.wav import load_wav
from common.config import AudioConfig
from common.data.features import check_stored, load_feature, load_mel, mel_size, recorded_samples, shape_error
from common.data.filelist import FilelistEntry, first_fields, read_filelist
from common.errors import InputError

WITH_DURATIONS = ("mel", "durations", "pitch", "text")
STORED = ("mel", "pitch", "text")
RECORDED = ("wav", "text")


@dataclass(frozen=True)
class Frames:
    """One utterance's sound, frame by frame."""

    mel: Tensor  # (n_mels, F) float32
    pitch: Tensor  # (F,) float32, Hz, 0 where unvoiced


class FrameSource(Protocol):
    """Where the frames of a list's utterances come from."""

    lengths: list[int]  # relative lengths, any unit

    def load(self, index: int) -> Frames:
        """The frames of one utterance; raises InputError where they are missing or broken."""


def columns_of(filelist: Path, *, learned_alignment: bool) -> tuple[str, ...]:
    """The columns of a list, by its first line.

    Raises:
        InputError: a list with durations for a voice that finds its own, or the reverse.
    """
    first, *others = first_fields(filelist)
    n_features = sum(field.endswith(".pt") for field in (first, *others[:2]))
    if not learned_alignment:
        if first and not first.endswith(".pt"):
            raise InputError(
                f"{filelist}: lists {first}, expected {'|'.join(WITH_DURATIONS)}; to train without durations, from "
                f"{'|'.join(RECORDED)} or {'|'.join(STORED)}, add --learned-alignment"
            )
        return WITH_DURATIONS
    if n_features == 3:
        raise InputError(
            f"{filelist}: has a column of durations, which --learned-alignment finds by itself; expected "
            f"{'|'.join(RECORDED)} or {'|'.join(STORED)}"
        )
    return STORED if n_features else RECORDED


def read_list(filelist: Path, *, learned_alignment: bool) -> list[FilelistEntry]:
    """The lines of a list, each with its speaker where there is such a column; raises InputError."""
    columns = columns_of(filelist, learned_alignment=learned_alignment)
    return read_filelist(filelist, columns=columns, optional=("speaker",))


class StoredFrames:
    """Frames of a list ``mels/a.pt|pitch/a.pt|text``, as extract_mels.py writes them.

    Raises:
        InputError: a mel is missing, or the features were made with other audio settings than ``audio``.
    """

    def __init__(self, folder: Path, entries: list[FilelistEntry], *, audio: AudioConfig) -> None:
        self._folder = folder
        self._entries = entries
        self._n_mels = audio.n_mels
        self.lengths = [mel_size(folder, entry) for entry in entries]
        for column in ("mel", "pitch"):
            check_stored(folder, entries, column=column, audio=audio)

    def load(self, index: int) -> Frames:
        """As `FrameSource.load`."""
        entry = self._entries[index]
        mel = load_mel(self._folder, entry, n_mels=self._n_mels)
        pitch = load_feature(self._folder, entry, "pitch").float().squeeze()  # the original's are (1, F)
        if pitch.shape != mel.shape[1:]:
            raise shape_error(entry, "pitch", pitch, wanted=f"({mel.size(1)},), the frames of {entry.fields['mel']}")
        if pitch.min() < 0:
            raise InputError(
                f"{entry.fields['pitch']}: holds negative values, expected pitch in Hz, 0 where unvoiced "
                f"({entry.where}); extract_mels.py --extract-pitch makes it"
            )
        return Frames(mel, pitch)


class RecordedFrames:
    """Frames of a list ``wavs/a.wav|text``: mels are made when they are wanted, pitch is kept in ``cache``.

    Raises:
        InputError: a recording is missing, too short, or not as ``audio`` says.
    """

    def __init__(self, folder: Path, entries: list[FilelistEntry], *, audio: AudioConfig, cache: PitchCache) -> None:
        self._folder = folder
        self._entries = entries
        self._rate = audio.sampling_rate
        self._extractor = MelExtractor(audio)
        self._cache = cache
        self.lengths = [self._extractor.n_frames(recorded_samples(folder, entry, self._extractor)) for entry in entries]

    def load(self, index: int) -> Frames:
        """As `FrameSource.load`."""
        entry = self._entries[index]
        wave = load_wav(self._folder / entry.fields["wav"], sampling_rate=self._rate, where=entry.where)
        mel = self._extractor(wave.unsqueeze(0))[0]
        name = f"{entry.fields['wav']}, {entry.where}"
        return Frames(mel, self._cache.pitch(wave, n_frames=mel.size(1), where=name))
