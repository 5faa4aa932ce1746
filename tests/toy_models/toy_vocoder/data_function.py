"""Segments of recordings and their mels."""

from dataclasses import dataclass

import torch
from torch import Tensor

from common.config import AudioConfig, TextConfig
from common.data import Batch, Filelists, RecordingDataset, input_mel_extractor
from toy_vocoder.options import TrainingOptions


@dataclass(frozen=True)
class ToyBatch(Batch):
    """Waves and their mels."""

    mel: Tensor  # (B, n_mels, F)
    wave: Tensor  # (B, F * hop)

    @property
    def n_frames(self) -> Tensor:
        return torch.tensor(self.mel.size(0) * self.mel.size(2))


class ToyDataset(RecordingDataset):
    """A segment of each recording: a random one in training, the first in validation."""

    def __init__(self, options: TrainingOptions, filelists: Filelists, audio: AudioConfig) -> None:
        super().__init__(options.dataset_path, filelists, audio=audio, seed=options.seed)
        self._n_frames = options.segment_frames
        self._size = options.segment_frames * audio.hop_length
        self._mel = input_mel_extractor(audio)

    def __getitem__(self, index: int) -> tuple[str, Tensor]:
        return self.name(index), self.load(index, start=0, n_samples=self._size)

    def draw(self, index: int, *, epoch: int) -> tuple[str, Tensor]:
        start = self.random_start(index, last=self.lengths[index] - self._size, epoch=epoch)
        return self.name(index), self.load(index, start=start, n_samples=self._size)

    def collate(self, items: list[tuple[str, Tensor]]) -> ToyBatch:
        wave = torch.stack([segment for _, segment in items])
        mel = self._mel(wave)[:, :, : self._n_frames]
        return ToyBatch(tuple(name for name, _ in items), mel, wave)


def build_dataset(
    options: TrainingOptions, filelists: Filelists, *, audio: AudioConfig, text: TextConfig | None, training: bool
) -> ToyDataset:
    """The list's recordings."""
    return ToyDataset(options, filelists, audio)
