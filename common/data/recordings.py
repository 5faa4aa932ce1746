"""What vocoders train on: recordings of a list, read completely or in part, and where their random segments begin."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from torch import Tensor

from common.audio.mel import MelExtractor
from common.audio.wav import check_wav, load_wav
from common.config import AudioConfig
from common.data.filelist import FilelistEntry, read_filelist


class Recordings:
    """Recordings of a list ``wavs/a.wav``; further columns of a text-to-mel list (text, speaker) do not matter.

    They are scaled to ``audio.peak``.

    Raises:
        InputError: the list or a recording is missing, or a recording is not as ``audio`` says.
    """

    def __init__(self, dataset_path: Path, filelist: Path, *, audio: AudioConfig) -> None:
        self._folder = dataset_path
        self._audio = audio
        self.entries = read_filelist(filelist, columns=("wav",), optional=("text", "speaker"), may_be_empty=("text",))
        self.lengths = [self._check_wav(entry) for entry in self.entries]  # samples
        self._peaks: dict[int, float] = {}  # largest absolute sample of the recordings that were read so far

    def __len__(self) -> int:
        return len(self.entries)

    def name(self, index: int) -> str:
        """A recording's name in messages, ``wavs/a.wav (train.txt:7)``."""
        entry = self.entries[index]
        return f"{entry.fields['wav']} ({entry.where})"

    def load(self, index: int, *, start: int, n_samples: int) -> Tensor:
        """A part of a recording (n_samples,), scaled as all of it."""
        entry = self.entries[index]
        path, rate = self._folder / entry.fields["wav"], self._audio.sampling_rate
        if self._audio.peak is None:
            return load_wav(path, sampling_rate=rate, where=entry.where, start=start, n_samples=n_samples)
        if index in self._peaks:
            part = load_wav(path, sampling_rate=rate, where=entry.where, start=start, n_samples=n_samples)
        else:
            wave = load_wav(path, sampling_rate=rate, where=entry.where)
            self._peaks[index] = float(wave.abs().max()) or 1.0  # silence stays silent
            part = wave[start : start + n_samples].clone()
        return part / self._peaks[index] * self._audio.peak

    def _check_wav(self, entry: FilelistEntry) -> int:
        path = self._folder / entry.fields["wav"]
        return check_wav(path, sampling_rate=self._audio.sampling_rate, where=entry.where).n_samples


def random_start(last: int, *, seed: int, epoch: int, index: int) -> int:
    """Where a segment begins, from 0 to ``last`` (inclusive; 0 if that is negative), in samples or frames.

    The place comes from the three numbers alone, so that resuming and loader processes change nothing.
    """
    generator = np.random.default_rng((seed, epoch, index))
    return int(generator.integers(0, max(last, 0), endpoint=True))


def input_mel_extractor(audio: AudioConfig) -> MelExtractor:
    """What makes a vocoder's input of a batch's audio, which is scaled already."""
    return MelExtractor(replace(audio, peak=None))
