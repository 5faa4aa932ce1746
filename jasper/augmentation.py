"""Random masks for features, and the standard deviation of dither."""

from dataclasses import dataclass

import torch
from torch import Tensor

from common.options import check_options, option

Limits = tuple[int, int] | None  # range of a width, inclusive; None: the whole axis


class Checked:
    """A dataclass that checks its options' ranges."""

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True)
class SpecAugment(Checked):
    """Masks over bands and frames (Park et al., arXiv:1904.08779)."""

    freq_masks: int = option(0, "masks of bands", least=0)
    min_freq: int = option(0, "bands", least=0)
    max_freq: int = option(10, "bands", least=0)
    time_masks: int = option(0, "masks of frames", least=0)
    min_time: int = option(0, "frames", least=0)
    max_time: int = option(10, "frames", least=0)


@dataclass(frozen=True)
class CutoutAugment(Checked):
    """Rectangular masks."""

    masks: int = option(0, "rectangles", least=0)
    min_freq: int = option(20, "bands", least=0)
    max_freq: int = option(20, "bands", least=0)
    min_time: int = option(5, "frames", least=0)
    max_time: int = option(5, "frames", least=0)


@dataclass(frozen=True)
class Augmentation:
    """Random changes to waves and features in training."""

    dither: float = option(1e-5, "standard deviation of noise added to waves; full scale is 1", least=0)
    spec_augment: SpecAugment | None = None
    cutout_augment: CutoutAugment | None = None

    @property
    def rectangles(self) -> list[tuple[Limits, Limits]]:
        """The bands and frames of each mask, in order of application."""
        cutout, spec = self.cutout_augment or CutoutAugment(), self.spec_augment or SpecAugment()
        rectangles: list[tuple[Limits, Limits]] = []
        rectangles += [((cutout.min_freq, cutout.max_freq), (cutout.min_time, cutout.max_time))] * cutout.masks
        rectangles += [((spec.min_freq, spec.max_freq), None)] * spec.freq_masks
        return rectangles + [(None, (spec.min_time, spec.max_time))] * spec.time_masks

    @property
    def n_draws(self) -> int:
        """Number of uniform random numbers that an utterance's masks need."""
        return 4 * len(self.rectangles)

    def masked(self, features: Tensor, lengths: Tensor, draws: Tensor) -> Tensor:
        """Mask features (B, C, F) of ``lengths`` (B,) frames with 0; draws (B, n_draws) are uniform in [0, 1)."""
        n_bands = torch.full_like(lengths, features.size(1))
        for (bands, frames), own in zip(self.rectangles, draws.split(4, dim=1)):
            in_bands = _span(own[:, :2], bands, n_bands, features.size(1)).unsqueeze(2)
            in_frames = _span(own[:, 2:], frames, lengths, features.size(2)).unsqueeze(1)
            features = features.masked_fill(in_bands & in_frames, 0.0)
        return features


def _span(draws: Tensor, limits: Limits, sizes: Tensor, size: int) -> Tensor:
    """Select a random span of positions below ``sizes`` (B,), or all: draws (B, 2) -> bool (B, size), True inside."""
    positions, sizes = torch.arange(size, device=draws.device), sizes.unsqueeze(1)
    if limits is None:
        return positions < sizes
    shortest, longest = limits
    widths = shortest + (draws[:, :1] * (longest - shortest + 1)).long()
    starts = (draws[:, 1:] * (sizes - widths).clamp(min=1)).long()
    return (positions >= starts) & (positions < starts + widths)
