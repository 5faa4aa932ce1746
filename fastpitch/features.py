"""Mels and pitch of a list's utterances: loaded from features on the disk, or computed from recordings."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from common.audio.mel import MelExtractor
from common.audio.pitch_cache import PitchCache
from common.audio.wav import load_wav
from common.config import AudioConfig
from common.data.features import check_stored, load_feature, load_mel, mel_size, recorded_samples, shape_error
from common.data.filelist import FilelistEntry
from common.errors import InputError


@dataclass(frozen=True)
class Features:
    """One utterance's sound."""

    mel: Tensor  # (n_mels, F) float32
    pitch: Tensor  # with durations (L,) float32, normalized; else (F,) float32, Hz, 0 where unvoiced
    durations: Tensor | None = None  # (L,) int64, frames


class StoredFeatures:
    """Files of a list ``mels/a.pt|pitch/a.pt|text`` or ``mels/a.pt|durations/a.pt|pitch_char/a.pt|text``, as
    extract_mels.py writes them. Raises InputError where a mel is missing or made with other settings than ``audio``.
    """

    def __init__(self, folder: Path, entries: Sequence[FilelistEntry], *, audio: AudioConfig) -> None:
        self._folder = folder
        self._entries = entries
        self._n_mels = audio.n_mels
        self.lengths = [mel_size(folder, entry) for entry in entries]  # bytes
        for column in ("mel",) if "durations" in entries[0].fields else ("mel", "pitch"):
            check_stored(folder, entries, column=column, audio=audio)

    def load(self, index: int) -> Features:
        """The features of one utterance; raises InputError where they are missing or broken."""
        entry = self._entries[index]
        mel = load_mel(self._folder, entry, n_mels=self._n_mels)
        pitch = load_feature(self._folder, entry, "pitch").float()
        if "durations" in entry.fields:
            return Features(mel, pitch, self._durations(entry, n_frames=mel.size(1)))
        pitch = pitch.squeeze()  # the original's are (1, F)
        if pitch.shape != mel.shape[1:]:
            raise shape_error(entry, "pitch", pitch, wanted=f"({mel.size(1)},), the frames of {entry.fields['mel']}")
        if pitch.min() < 0:
            raise InputError(
                f"{entry.fields['pitch']}: holds negative values, expected pitch in Hz, 0 where unvoiced "
                f"({entry.where}); extract_mels.py --extract-pitch makes it"
            )
        return Features(mel, pitch)

    def _durations(self, entry: FilelistEntry, *, n_frames: int) -> Tensor:
        durations = load_feature(self._folder, entry, "durations")
        name = entry.fields["durations"]
        if not torch.equal(durations, durations.round()) or (durations < 0).any():
            raise InputError(f"{name}: expected whole numbers of frames ({entry.where})")
        if durations.sum() != n_frames:
            raise InputError(
                f"{name}: {int(durations.sum())} frames in all, but {entry.fields['mel']} has {n_frames} "
                f"({entry.where})"
            )
        return durations.long()


class RecordedFeatures:
    """Features of a list ``wavs/a.wav|text``: mels are computed each time, pitch is kept in ``cache``.

    Raises InputError where a recording is missing, too short, or not as ``audio`` says.
    """

    def __init__(
        self, folder: Path, entries: Sequence[FilelistEntry], *, audio: AudioConfig, cache: PitchCache
    ) -> None:
        self._folder = folder
        self._entries = entries
        self._rate = audio.sampling_rate
        self._extractor = MelExtractor(audio)
        self._cache = cache
        n_samples = [recorded_samples(folder, entry, self._extractor) for entry in entries]
        self.lengths = [int(self._extractor.n_frames(n)) for n in n_samples]

    def load(self, index: int) -> Features:
        """The features of one utterance; raises InputError where they are missing or broken."""
        entry = self._entries[index]
        wave = load_wav(self._folder / entry.fields["wav"], sampling_rate=self._rate, where=entry.where)
        mel = self._extractor(wave.unsqueeze(0))[0]
        name = f"{entry.fields['wav']}, {entry.where}"
        return Features(mel, self._cache.pitch(wave, n_frames=mel.size(1), where=name))


FeatureSource = StoredFeatures | RecordedFeatures
