"""WaveGlow's data: random segments of recordings for training, fixed ones for validation."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from common.data.batch import Batch
from common.data.recordings import RecordingDataset
from waveglow.arg_parser import TrainingOptions


@dataclass(frozen=True)
class WaveGlowBatch(Batch):
    """Segments of recordings and, in validation, the recordings they come from, zero-padded."""

    audio: Tensor  # (B, segment) float32 in [-1, 1]
    hop_length: int  # samples
    n_samples: tuple[int, ...] = ()  # of the recordings
    recordings: Tensor | None = None  # (B, T) float32, for resynthesis

    @property
    def frame_lengths(self) -> Tensor:
        n_frames = self.audio.size(1) // self.hop_length
        return torch.full((len(self.names),), n_frames, device=self.audio.device)


class WaveGlowDataset(RecordingDataset):
    """Segments of recordings: ``draw`` returns a random one; indexing, always the same one, with its recording."""

    options: TrainingOptions

    def __getitem__(self, index: int) -> WaveGlowBatch:
        """Return the segment of epoch 0, which isn't a training epoch, and the complete recording."""
        recording = self.load(index, start=0, n_samples=max(self.lengths[index], self.options.segment_length))
        return replace(self.draw(index, epoch=0), n_samples=(len(recording),), recordings=recording[None])

    def draw(self, index: int, *, epoch: int) -> WaveGlowBatch:
        size = self.options.segment_length
        start = self.random_start(index, last=self.lengths[index] - size, epoch=epoch)
        segment = self.load(index, start=start, n_samples=size)
        return WaveGlowBatch((self.name(index),), segment[None], self.audio.hop_length)


build_dataset = WaveGlowDataset
