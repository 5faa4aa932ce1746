"""Waves at other sampling rates."""

import math

import soxr
import torch
import torch.nn.functional as F
from torch import Tensor

_QUALITY = "HQ"  # of soxr; 79 dB from SoX itself


def resample(wave: Tensor, *, ratio: float) -> Tensor:
    """(T,) -> (round(T x ratio),), at least one sample; the same wave where ``ratio``, new rate by old, is 1."""
    if ratio == 1:
        return wave
    n_samples = max(math.floor(len(wave) * ratio + 0.5), 1)
    samples = soxr.resample(wave.numpy(), 1.0, ratio, quality=_QUALITY)[:n_samples]
    return F.pad(torch.from_numpy(samples), (0, n_samples - len(samples)))
