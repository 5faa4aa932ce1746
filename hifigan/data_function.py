"""HiFi-GAN's data: random segments of recordings for training, complete ones for validation, mels from files."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from common.audio.mel import SILENT_MEL, MelExtractor
from common.data.batch import Batch
from common.data.filelist import Filelists
from common.data.recordings import RecordingDataset
from hifigan.arg_parser import TrainingOptions


@dataclass(frozen=True)
class HifiganBatch(Batch):
    """Recordings or segments, zero-padded."""

    audio: Tensor  # (B, T) float32 in [-1, 1]
    audio_lengths: Tensor  # (B,) int64 samples, multiples of the hop length
    hop_length: int  # samples
    mels: Tensor | None = None  # (B, n_mels, T / hop) float32; None: computed from the audio

    @property
    def frame_lengths(self) -> Tensor:
        return self.audio_lengths // self.hop_length


class HifiganDataset(RecordingDataset):
    """Recordings of a list, with mels from ``options.input_mels_dir`` if that is given.

    ``draw`` returns a random segment; indexing returns the recording up to its last complete frame.
    """

    def __init__(self, options: TrainingOptions, filelists: Filelists, **known: Any) -> None:
        super().__init__(options, filelists, mels=options.input_mels_dir, **known)
        self._segment_size: int = options.segment_size  # type: ignore[assignment]  # set by `set_up`
        self._extractor = MelExtractor(self.audio)

    def __getitem__(self, index: int) -> HifiganBatch:
        hop = self.audio.hop_length
        self.check_length(index, -(-self._extractor.min_samples // hop) * hop)
        n_frames = self.lengths[index] // hop
        mel = self.load_mel(index)
        wave = self.load(index, start=0, n_samples=n_frames * hop)
        return self._batch(index, wave, None if mel is None else mel[:, :n_frames])

    def draw(self, index: int, *, epoch: int) -> HifiganBatch:
        """Return a segment at a position that depends on seed, epoch and index; mels from files start at a frame."""
        n_samples, size, hop = self.lengths[index], self._segment_size, self.audio.hop_length
        mel = self.load_mel(index)
        if mel is None:
            start = self.random_start(index, last=n_samples - size, epoch=epoch)
        else:
            n_frames, n_wanted = n_samples // hop, size // hop
            first = self.random_start(index, last=n_frames - n_wanted, epoch=epoch)
            start = first * hop
            mel = mel[:, first : min(first + n_wanted, n_frames)]
            mel = F.pad(mel, (0, n_wanted - mel.size(1)), value=SILENT_MEL)
        return self._batch(index, self.load(index, start=start, n_samples=size), mel)

    def _batch(self, index: int, wave: Tensor, mel: Tensor | None) -> HifiganBatch:
        """wave (T,), mel (n_mels, T / hop) -> a batch of one."""
        lengths, mels = torch.tensor([len(wave)]), None if mel is None else mel[None]
        return HifiganBatch((self.name(index),), wave[None], lengths, self.audio.hop_length, mels)


build_dataset = HifiganDataset
