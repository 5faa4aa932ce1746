"""Segments of recordings and their mels."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from common.config import AudioConfig, TextConfig
from common.data.batch import Batch
from common.data.recordings import Recordings, input_mel_extractor, random_start
from toy_vocoder.arg_parser import TrainingOptions


@dataclass(frozen=True)
class ToyBatch(Batch):
    """Waves and their mels."""

    mel: Tensor  # (B, n_mels, F)
    wave: Tensor  # (B, F * hop)

    @property
    def n_frames(self) -> Tensor:
        return torch.tensor(self.mel.size(0) * self.mel.size(2))


class ToyDataset:
    """A segment of each recording: a random one in training, the first in validation."""

    def __init__(self, options: TrainingOptions, filelist: Path, audio: AudioConfig) -> None:
        self._recordings = Recordings(options.dataset_path, filelist, audio=audio)
        self._size = options.segment_frames * audio.hop_length
        self._options = options
        self._mel = input_mel_extractor(audio)
        self.lengths = self._recordings.lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> tuple[str, Tensor]:
        return self._segment(index, 0)

    def draw(self, index: int, *, epoch: int) -> tuple[str, Tensor]:
        last = self.lengths[index] - self._size
        return self._segment(index, random_start(last, seed=self._options.seed, epoch=epoch, index=index))

    def collate(self, items: list[tuple[str, Tensor]]) -> ToyBatch:
        wave = torch.stack([segment for _, segment in items])
        mel = self._mel(wave)[:, :, : self._options.segment_frames]
        return ToyBatch(tuple(name for name, _ in items), mel, wave)

    def _segment(self, index: int, start: int) -> tuple[str, Tensor]:
        return self._recordings.name(index), self._recordings.load(index, start=start, n_samples=self._size)


def build_dataset(
    options: TrainingOptions, filelist: Path, *, audio: AudioConfig, text: TextConfig | None, training: bool
) -> ToyDataset:
    """The list's recordings."""
    return ToyDataset(options, filelist, audio)
