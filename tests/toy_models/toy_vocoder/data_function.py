"""Segments of recordings and their mels."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from common.data.batch import Batch
from common.data.filelist import Filelists
from common.data.recordings import RecordingDataset, input_mel_extractor
from toy_vocoder.options import TrainingOptions


@dataclass(frozen=True)
class ToyBatch(Batch):
    """Waves and their mels."""

    mel: Tensor  # (B, n_mels, F)
    wave: Tensor  # (B, F * hop)

    @property
    def frame_lengths(self) -> Tensor:
        return torch.full((self.mel.size(0),), self.mel.size(2))


class ToyDataset(RecordingDataset):
    """A segment of each recording: a random one in training, the first in validation."""

    def __init__(self, options: TrainingOptions, filelists: Filelists, **known: Any) -> None:
        super().__init__(options, filelists, **known)
        self._n_frames = options.segment_frames
        self._size = options.segment_frames * self.audio.hop_length
        self._mel = input_mel_extractor(self.audio)

    def __getitem__(self, index: int) -> tuple[str, Tensor]:
        return self.name(index), self.load(index, start=0, n_samples=self._size)

    def draw(self, index: int, *, epoch: int) -> tuple[str, Tensor]:
        start = self.random_start(index, last=self.lengths[index] - self._size, epoch=epoch)
        return self.name(index), self.load(index, start=start, n_samples=self._size)

    def collate(self, items: list[tuple[str, Tensor]]) -> ToyBatch:
        wave = torch.stack([segment for _, segment in items])
        mel = self._mel(wave)[:, :, : self._n_frames]
        return ToyBatch(tuple(name for name, _ in items), mel, wave)
