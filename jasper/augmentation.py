"""Dither and masks of features, which depend on seed, epoch and index alone."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from common.options import check_options, option

_STREAM = 1  # keeps these random numbers apart from others of the same seed, epoch and index
_NOISE_SAMPLES = 2**16  # dither repeats after them; every utterance starts at a random position


class Checked:
    """A dataclass whose options are in their ranges."""

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class SpecAugment(Checked):
    """Bands and spans of frames that are masked (Park et al., arXiv:1904.08779); widths are drawn inclusively."""

    freq_masks: int = option(0, "masks of bands", least=0)
    min_freq: int = option(0, "bands", least=0)
    max_freq: int = option(10, "bands", least=0)
    time_masks: int = option(0, "masks of frames", least=0)
    min_time: int = option(0, "frames", least=0)
    max_time: int = option(10, "frames", least=0)

    @property
    def n_draws(self) -> int:
        """Uniform numbers that an utterance's masks need."""
        return 2 * (self.freq_masks + self.time_masks)

    def mask(self, n_bands: int, n_frames: int, lengths: Tensor, draws: Tensor) -> Tensor:
        """Where features (B, n_bands, n_frames) of ``lengths`` (B,) frames are masked, bool; draws (B, n_draws)."""
        of_bands, of_frames = draws.split([2 * self.freq_masks, 2 * self.time_masks], dim=1)
        bands = _spans(of_bands, self.min_freq, self.max_freq, torch.full_like(lengths, n_bands), n_bands)
        frames = _spans(of_frames, self.min_time, self.max_time, lengths, n_frames)
        return bands.any(dim=1).unsqueeze(2) | frames.any(dim=1).unsqueeze(1)


@dataclass(frozen=True)
class CutoutAugment(Checked):
    """Rectangles that are masked; their extents are drawn inclusively."""

    masks: int = option(0, "rectangles", least=0)
    min_freq: int = option(20, "bands", least=0)
    max_freq: int = option(20, "bands", least=0)
    min_time: int = option(5, "frames", least=0)
    max_time: int = option(5, "frames", least=0)

    @property
    def n_draws(self) -> int:
        """Uniform numbers that an utterance's masks need."""
        return 4 * self.masks

    def mask(self, n_bands: int, n_frames: int, lengths: Tensor, draws: Tensor) -> Tensor:
        """Where features (B, n_bands, n_frames) of ``lengths`` (B,) frames are masked, bool; draws (B, n_draws)."""
        of_bands, of_frames = draws.chunk(2, dim=1)
        bands = _spans(of_bands, self.min_freq, self.max_freq, lengths.new_full(lengths.shape, n_bands), n_bands)
        frames = _spans(of_frames, self.min_time, self.max_time, lengths, n_frames)
        return (bands.unsqueeze(3) & frames.unsqueeze(2)).any(dim=1)


@dataclass(frozen=True)
class Augmentation:
    """Random changes of the features in training."""

    dither: float = option(1e-5, "standard deviation of noise that is added to waves; full scale is 1", least=0)
    spec_augment: SpecAugment | None = None
    cutout_augment: CutoutAugment | None = None

    @property
    def n_draws(self) -> int:
        """Uniform numbers that an utterance needs: the start of its noise, then those of its masks."""
        return 1 + sum(one.n_draws for one in self._masks())

    def draw(self, *, seed: int, epoch: int, index: int) -> Tensor:
        """Uniform numbers (n_draws,) float32 in [0, 1) of an utterance of a list in an epoch."""
        generator = np.random.default_rng((seed, epoch, index, _STREAM))
        return torch.from_numpy(generator.random(self.n_draws, dtype=np.float32))

    def dithered(self, waves: Tensor, draws: Tensor) -> Tensor:
        """waves (B, T) with noise, a new tensor; draws (B, n_draws)."""
        if self.dither == 0:
            return waves
        start = (draws[:, :1] * _NOISE_SAMPLES).long()
        places = (start + torch.arange(waves.size(1), device=waves.device)) % _NOISE_SAMPLES
        return waves + self.dither * _noise(waves.device)[places]

    def masked(self, features: Tensor, lengths: Tensor, draws: Tensor) -> Tensor:
        """features (B, C, F) of ``lengths`` (B,) frames, with masks of 0 within them; draws (B, n_draws)."""
        for one, own in zip(self._masks(), draws[:, 1:].split([one.n_draws for one in self._masks()], dim=1)):
            features = features.masked_fill(one.mask(features.size(1), features.size(2), lengths, own), 0.0)
        return features

    def _masks(self) -> list[SpecAugment | CutoutAugment]:
        """In the order in which they are applied."""
        return [one for one in (self.cutout_augment, self.spec_augment) if one is not None and one.n_draws > 0]


def _spans(draws: Tensor, shortest: int, longest: int, sizes: Tensor, size: int) -> Tensor:
    """Random spans of positions: draws (B, 2 * n), sizes (B,) -> bool (B, n, size), True within a span."""
    of_widths, of_starts = draws.chunk(2, dim=1)
    widths = shortest + (of_widths * (longest - shortest + 1)).long()
    room = (sizes.unsqueeze(1) - widths).clamp(min=1)
    starts = (of_starts * room).long().unsqueeze(2)
    positions = torch.arange(size, device=draws.device)
    return (positions >= starts) & (positions < starts + widths.unsqueeze(2))


@lru_cache(maxsize=4)
def _noise(device: torch.device) -> Tensor:
    """Fixed noise (_NOISE_SAMPLES,) float32, with equal values on all devices."""
    return torch.randn(_NOISE_SAMPLES, generator=torch.Generator().manual_seed(0)).to(device)
