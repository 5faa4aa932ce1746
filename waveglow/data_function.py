"""WaveGlow's data: random segments of recordings to train on, the same ones each time to validate on."""

from dataclasses import dataclass

import torch
from torch import Tensor

from common.data import Batch, RecordingDataset, pad_fields
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

    options: TrainingOptions

    def __getitem__(self, index: int) -> WaveGlowUtterance:
        """The segment of epoch 0, which is no epoch of training, and the complete recording."""
        size = self.options.segment_length
        recording = self.load(index, start=0, n_samples=max(self.lengths[index], size))
        start = self.random_start(index, last=self.lengths[index] - size, epoch=0)
        return WaveGlowUtterance(self.name(index), recording[start : start + size], recording)

    def draw(self, index: int, *, epoch: int) -> WaveGlowUtterance:
        """A segment from a random place."""
        size = self.options.segment_length
        start = self.random_start(index, last=self.lengths[index] - size, epoch=epoch)
        return WaveGlowUtterance(self.name(index), self.load(index, start=start, n_samples=size))

    def collate(self, items: list[WaveGlowUtterance]) -> WaveGlowBatch:
        """Utterances as a batch, in their order."""
        return WaveGlowBatch(
            names=tuple(item.name for item in items),
            hop_length=self.audio.hop_length,
            n_samples=tuple(len(item.recordings) for item in items if item.recordings is not None),
            **pad_fields(items, "audio", "recordings"),
        )
