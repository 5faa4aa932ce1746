"""Vocoders' training data: recordings and mels, whole or in random segments."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from common.audio.mel import MelExtractor
from common.audio.wav import check_wav, load_wav
from common.config import AudioConfig
from common.data.batch import join_batches
from common.data.features import check_made_with, feature_name, load_fractions
from common.data.filelist import FilelistEntry, Filelists, ListedDataset, first_fields, paths_of, read_filelist
from common.errors import InputError


class RecordingDataset(ListedDataset):
    """Base class of vocoder datasets: the recordings of one or several lists, scaled to ``audio.peak``.

    Only ``dataset_path`` and ``seed`` of a package's ``options`` are used. The other columns of text-to-mel lists,
    ``[|pitch/a.pt][|text][|speaker]``, are ignored. If the folder ``mels`` is given, the mel of ``wavs/a.wav`` is
    ``a.pt`` in it. Raises InputError if a list, recording or mel is missing, a recording doesn't fit ``audio``, or the
    mels were made with other audio settings.
    """

    def __init__(
        self,
        options: Any,
        filelists: Filelists,
        *,
        audio: AudioConfig,
        text: None = None,
        training: bool = True,
        mels: Path | None = None,
    ) -> None:
        self.folder: Path = options.dataset_path
        self.options, self._seed = options, options.seed
        self._peaks: dict[int, float] = {}  # maximum absolute sample of each recording read so far
        self.audio = audio
        self.entries = [entry for path in paths_of(filelists) for entry in _read_list(path)]
        check = partial(check_wav, sampling_rate=audio.sampling_rate)
        found = [check(self.folder / entry.fields["wav"], where=entry.where) for entry in self.entries]
        self.lengths = [one.n_samples for one in found]
        self._mel_paths: list[Path] | None = None  # of the recordings, if mels are given
        if mels is not None:
            self._mel_paths = [mels / f"{feature_name(entry.fields['wav'])}.pt" for entry in self.entries]
            for path, entry in zip(self._mel_paths, self.entries):
                if not path.is_file():
                    made = "scripts/extract_fine_tune_mels.sh or extract_mels.py makes it"
                    raise InputError(f"{path}: no such file, for {entry.fields['wav']} ({entry.where}); {made}")
            # The peak must agree too, since the recordings are scaled to it.
            check_made_with(mels, audio, name="mels")

    def load(self, index: int, *, start: int, n_samples: int) -> Tensor:
        """Load part of a recording (n_samples,), scaled like the whole recording and zero-padded at the end."""
        entry, peak = self.entries[index], self.audio.peak
        path, rate = self.folder / entry.fields["wav"], self.audio.sampling_rate
        size = min(n_samples, self.lengths[index] - start)
        read = partial(load_wav, path, sampling_rate=rate, where=entry.where)
        if peak is None or index in self._peaks:
            part = read(start=start, n_samples=size)
        else:
            wave = read()
            self._peaks[index] = float(wave.abs().max()) or 1.0  # silence stays silent
            part = wave[start : start + size]
        if peak is not None:
            part = part / self._peaks[index] * peak
        return F.pad(part, (0, n_samples - size))

    def load_mel(self, index: int) -> Tensor | None:
        """Load the mel (n_mels, F) of a whole recording; returns None if mels are computed.

        Raises InputError if its shape doesn't fit the recording.
        """
        if self._mel_paths is None:
            return None
        entry, path = self.entries[index], self._mel_paths[index]
        mel = load_fractions(path, where=entry.where)
        wanted = (self.audio.n_mels, MelExtractor(self.audio).n_frames(self.lengths[index]))
        if mel.shape != wanted:
            problem = f"shape {tuple(mel.shape)}, expected {wanted} ({entry.where}); extract the mels again"
            raise InputError(f"{path}: {problem} from {entry.fields['wav']}")
        return mel

    collate = staticmethod(join_batches)

    def check_length(self, index: int, least: int) -> None:
        """Raise InputError if a recording has fewer than ``least`` samples, too few for a mel."""
        entry, n_samples = self.entries[index], self.lengths[index]
        if n_samples < least:
            problem = f"{n_samples} samples, too short to validate on; a mel needs at least {least}"
            raise InputError(f"{entry.fields['wav']}: {problem} ({entry.where})")

    def random_start(self, index: int, *, last: int, epoch: int) -> int:
        """Choose a segment's start from 0 to ``last`` (inclusive; 0 if ``last`` is negative), in samples or frames.

        It depends only on seed, epoch and index, so that resuming and loader processes don't change it.
        """
        generator = np.random.default_rng((self._seed, epoch, index))
        return int(generator.integers(0, max(last, 0), endpoint=True))


def _read_list(path: Path) -> list[FilelistEntry]:
    """Read a list; its first line shows whether it has a pitch column."""
    fields = first_fields(path)
    has_pitch = len(fields) == 4 or (len(fields) > 1 and fields[1].endswith(".pt"))
    columns = ("wav", "pitch") if has_pitch else ("wav",)
    return read_filelist(path, columns=columns, optional=("text", "speaker"), may_be_empty=("text",))


def input_mel_extractor(audio: AudioConfig) -> MelExtractor:
    """Make the extractor for a vocoder's input mels from batches, whose audio is already scaled."""
    return MelExtractor(replace(audio, peak=None))
