"""WaveGlow's data: random segments of recordings to train on, the same ones each time to validate on."""

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from common.config import AudioConfig
from common.data.batch import Batch
from common.data.recordings import Recordings, random_start
from waveglow.arg_parser import TrainingOptions


@dataclass(frozen=True)
class WaveGlowBatch(Batch):
    """Segments of recordings, and in validation the recordings they are from, zero-padded."""

    audio: Tensor  # (B, segment) float32 in [-1, 1]
    hop_length: int  # samples
    recordings: Tensor | None = None  # (B, T) float32, for resynthesis
    recording_lengths: Tensor | None = None  # (B,) int64 samples

    @property
    def n_frames(self) -> Tensor:
        n_frames = len(self.names) * (self.audio.size(1) // self.hop_length)
        return torch.full((), n_frames, device=self.audio.device)


@dataclass(frozen=True)
class WaveGlowUtterance:
    """A segment of a recording."""

    name: str  # "wavs/a.wav (train.txt:7)"
    segment: Tensor  # (segment,) float32
    recording: Tensor | None = None  # (T,) float32, at least as long as the segment


class WaveGlowDataset:
    """Segments of ``segment_length`` samples of a list's recordings, which `common.data.recordings.Recordings` reads.

    ``draw`` gives a segment from a place that seed, epoch and index decide, for training; indexing gives the same
    segment each time, and the complete recording. A shorter recording is zero-padded.
    """

    def __init__(
        self, dataset_path: Path, filelist: Path, *, audio: AudioConfig, segment_length: int, seed: int
    ) -> None:
        self._recordings = Recordings(dataset_path, filelist, audio=audio)
        self._hop_length = audio.hop_length
        self._segment_length = segment_length
        self._seed = seed
        self.lengths = self._recordings.lengths  # samples

    def __len__(self) -> int:
        return len(self._recordings)

    def __getitem__(self, index: int) -> WaveGlowUtterance:
        """The segment of epoch 0, which is no epoch of training, and the complete recording."""
        recording = self._padded(self._recordings.load(index, start=0, n_samples=self.lengths[index]))
        start = self._start(index, epoch=0)
        segment = recording[start : start + self._segment_length]
        return WaveGlowUtterance(self._recordings.name(index), segment, recording)

    def draw(self, index: int, *, epoch: int) -> WaveGlowUtterance:
        """A segment from a random place."""
        start = self._start(index, epoch=epoch)
        n_samples = min(self._segment_length, self.lengths[index] - start)
        segment = self._padded(self._recordings.load(index, start=start, n_samples=n_samples))
        return WaveGlowUtterance(self._recordings.name(index), segment)

    def collate(self, items: list[WaveGlowUtterance]) -> WaveGlowBatch:
        """Utterances as a batch, in their order."""
        recordings = [item.recording for item in items if item.recording is not None]
        return WaveGlowBatch(
            names=tuple(item.name for item in items),
            audio=torch.stack([item.segment for item in items]),
            hop_length=self._hop_length,
            recordings=pad_sequence(recordings, batch_first=True) if recordings else None,
            recording_lengths=torch.tensor([len(one) for one in recordings]) if recordings else None,
        )

    def _start(self, index: int, *, epoch: int) -> int:
        return random_start(self.lengths[index] - self._segment_length, seed=self._seed, epoch=epoch, index=index)

    def _padded(self, wave: Tensor) -> Tensor:
        return F.pad(wave, (0, max(self._segment_length - len(wave), 0)))


def build_dataset(
    options: TrainingOptions, filelist: Path, *, audio: AudioConfig, text: None = None, training: bool = True
) -> WaveGlowDataset:
    """The dataset of a filelist, for training and for validation."""
    length, seed = options.segment_length, options.seed
    return WaveGlowDataset(options.dataset_path, filelist, audio=audio, segment_length=length, seed=seed)
