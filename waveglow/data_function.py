"""WaveGlow's data: random segments of recordings to train on, the same ones each time to validate on."""

from dataclasses import dataclass

import torch
from torch import Tensor

from common.config import AudioConfig
from common.data import Batch, Filelists, RecordingDataset, pad_fields
from waveglow.options import TrainingOptions


@dataclass(frozen=True)
class WaveGlowBatch(Batch):
    """Segments of recordings, and in validation the recordings they are from, zero-padded."""

    audio: Tensor  # (B, segment) float32 in [-1, 1]
    hop_length: int  # samples
    n_samples: tuple[int, ...] = ()  # of the recordings
    recordings: Tensor | None = None  # (B, T) float32, for resynthesis

    @property
    def n_frames(self) -> Tensor:
        n_frames = len(self.names) * (self.audio.size(1) // self.hop_length)
        return torch.full((), n_frames, device=self.audio.device)


@dataclass(frozen=True)
class WaveGlowUtterance:
    """A segment of a recording."""

    name: str  # "wavs/a.wav (train.txt:7)"
    audio: Tensor  # (segment,) float32
    recordings: Tensor | None = None  # (T,) float32, the complete recording, at least as long as the segment


class WaveGlowDataset(RecordingDataset):
    """Segments of a list's recordings; zeros follow a recording that is shorter than one.

    ``draw`` gives a segment from a place that seed, epoch and index decide, for training; indexing gives the same
    segment each time, and the complete recording.
    """

    def __init__(self, options: TrainingOptions, filelists: Filelists, *, audio: AudioConfig) -> None:
        super().__init__(options.dataset_path, filelists, audio=audio, seed=options.seed)
        self._size = options.segment_length

    def __getitem__(self, index: int) -> WaveGlowUtterance:
        """The segment of epoch 0, which is no epoch of training, and the complete recording."""
        recording = self.load(index, start=0, n_samples=max(self.lengths[index], self._size))
        start = self._start(index, epoch=0)
        return WaveGlowUtterance(self.name(index), recording[start : start + self._size], recording)

    def draw(self, index: int, *, epoch: int) -> WaveGlowUtterance:
        """A segment from a random place."""
        segment = self.load(index, start=self._start(index, epoch=epoch), n_samples=self._size)
        return WaveGlowUtterance(self.name(index), segment)

    def collate(self, items: list[WaveGlowUtterance]) -> WaveGlowBatch:
        """Utterances as a batch, in their order."""
        return WaveGlowBatch(
            names=tuple(item.name for item in items),
            hop_length=self.audio.hop_length,
            n_samples=tuple(len(item.recordings) for item in items if item.recordings is not None),
            **pad_fields(items, "audio", "recordings"),
        )

    def _start(self, index: int, *, epoch: int) -> int:
        return self.random_start(index, last=self.lengths[index] - self._size, epoch=epoch)


def build_dataset(
    options: TrainingOptions, filelists: Filelists, *, audio: AudioConfig, text: None = None, training: bool = True
) -> WaveGlowDataset:
    """The dataset of filelists, for training and for validation."""
    return WaveGlowDataset(options, filelists, audio=audio)
