"""The harmonic vocoder's data: random segments of recordings with their pitch, varied in speed and loudness."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from common.audio.mel import SILENT_MEL, MelExtractor
from common.audio.pitch import AT_FRAMES
from common.audio.pitch_cache import PitchCache
from common.audio.wav import resample
from common.data.batch import Batch
from common.data.filelist import Filelists
from common.data.recordings import RecordingDataset
from harmonic.arg_parser import PITCH_CACHE, TrainingOptions
from harmonic.source import fill_unvoiced

CONTEXT = 3  # frames on each side of a segment, which the network reads and the loss leaves out
PITCH_SEGMENTS = 4  # segment lengths of audio from which pitch is learned, which needs more speech than the filter
_LOUDER = (-0.5, 0.3)  # range of the log gain
_FASTER = (0.79, 1.27)  # range of the speed factor, which also changes pitch and formants
_SHARE_FASTER = 0.5
_MEL_NOISE = 0.08  # largest standard deviation of noise in the pitch network's mel


@dataclass(frozen=True)
class HarmonicBatch(Batch):
    """Parts of recordings that begin with a segment, or complete recordings; zero-padded."""

    audio: Tensor  # (B, T) float32
    n_samples: tuple[int, ...]  # of each recording
    pitch: Tensor  # (B, F) float32 in Hz, interpolated where unvoiced
    voicing: Tensor  # (B, F) float32, 0 or 1
    noise: Tensor | None = None  # (B, 2, segment) float32, two sources of the unvoiced sound
    mel_noise: Tensor | None = None  # (B, n_mels, F) float32, added to the pitch network's input
    mels: Tensor | None = None  # (B, n_mels, F) float32, the network's input; None: the audio's mels

    @property
    def frame_lengths(self) -> Tensor:
        return torch.full((len(self.names),), self.pitch.size(1), device=self.pitch.device)


class HarmonicDataset(RecordingDataset):
    """Recordings of a list with Praat's pitch from the pitch cache.

    ``draw`` returns a part with random position, speed, loudness and noise, which depend on seed, epoch and index; with
    mels from files, only the position is random. Indexing returns the complete recording.
    """

    def __init__(self, options: TrainingOptions, filelists: Filelists, **known: Any) -> None:
        super().__init__(options, filelists, mels=options.input_mels_dir, **known)
        self._segment = options.segment_frames + 2 * CONTEXT
        self._extractor = MelExtractor(self.audio)
        folder = options.pitch_cache or self.folder / PITCH_CACHE
        self._cache = PitchCache(folder, self.audio, AT_FRAMES, options.pitch_range)
        self._pitches: dict[int, Tensor] = {}  # of the recordings read so far

    def __getitem__(self, index: int) -> HarmonicBatch:
        self.check_length(index, self._extractor.min_samples)
        pitch = self._pitch(index)
        wave = self.load(index, start=0, n_samples=self.lengths[index])
        rows = {"pitch": fill_unvoiced(pitch), "voicing": (pitch > 0).float(), "mels": self.load_mel(index)}
        return self._batch(index, wave, **rows)

    def draw(self, index: int, *, epoch: int) -> HarmonicBatch:
        """Return a zero-padded part from a random position; its segment fits in the recording unless that's shorter."""
        n_mels, hop, size = self.audio.n_mels, self.audio.hop_length, self.audio.filter_length
        n_frames, pad_left = PITCH_SEGMENTS * self._segment, self._extractor.pad_left
        random = np.random.default_rng((self._seed, epoch, index, 1))
        mel = self.load_mel(index)
        varied = mel is None and random.random() < _SHARE_FASTER
        speed = float(random.uniform(*_FASTER)) if varied else 1.0
        n_samples, n_segment = ((count - 1) * hop + size for count in (n_frames, self._segment))
        last = self.lengths[index] - math.ceil(n_segment * speed)
        if mel is None:
            start = self.random_start(index, last=last, epoch=epoch)
        else:  # at the first sample of a frame's window
            first = -(-pad_left // hop)
            first += self.random_start(index, last=(last + pad_left) // hop - first, epoch=epoch)
            start = first * hop - pad_left
            mel = mel[:, first : first + n_frames]
            mel = F.pad(mel, (0, n_frames - mel.size(1)), value=SILENT_MEL)
        wave = resample(self.load(index, start=start, n_samples=math.ceil(n_samples * speed)), ratio=1 / speed)
        wave = F.pad(wave[:n_samples], (0, max(n_samples - len(wave), 0)))
        if mel is None:
            wave = wave * math.exp(random.uniform(*_LOUDER))
        # Frame centers, in frames of the recording.
        samples = start + speed * (hop * torch.arange(n_frames) + size // 2)
        places = (samples - size // 2 + pad_left) / hop
        pitch, voicing = _pitch_at(self._pitch(index), places)
        noise = torch.from_numpy(random.standard_normal((2, n_segment), dtype=np.float32))
        mel_noise = torch.from_numpy(random.standard_normal((n_mels, n_frames), dtype=np.float32))
        mel_noise *= float(random.uniform(0, _MEL_NOISE))
        rows = {"pitch": pitch * speed, "voicing": voicing, "noise": noise, "mel_noise": mel_noise, "mels": mel}
        return self._batch(index, wave, **rows)

    def _batch(self, index: int, wave: Tensor, **rows: Tensor | None) -> HarmonicBatch:
        """wave (T,) and the fields of a batch without their first dimension -> a batch of one."""
        fields: dict[str, Any] = {name: None if row is None else row[None] for name, row in rows.items()}
        return HarmonicBatch((self.name(index),), wave[None], (len(wave),), **fields)

    def _pitch(self, index: int) -> Tensor:
        """Return the pitch (F,) of a recording's mel frames in Hz, 0 where unvoiced."""
        if index not in self._pitches:
            wave = self.load(index, start=0, n_samples=self.lengths[index])
            n_frames = self._extractor.n_frames(self.lengths[index])
            self._pitches[index] = self._cache.pitch(wave, n_frames=n_frames, where=self.name(index))
        return self._pitches[index]


def _pitch_at(pitch: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """pitch (F,) in Hz, 0 where unvoiced, places (N,) in frames -> pitch (N,), interpolated, and voicing (N,)."""
    last = len(pitch) - 1
    log_pitch = fill_unvoiced(pitch).log()
    before = places.floor().clamp(0, last).long()
    after = (before + 1).clamp(max=last)
    between = torch.lerp(log_pitch[before], log_pitch[after], (places - before).clamp(0, 1)).exp()
    nearest = places.round().clamp(0, last).long()
    return between, ((pitch[nearest] > 0) & (places < last + 0.5)).float()


build_dataset = HarmonicDataset
