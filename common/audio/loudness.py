"""The loudness of a recording by EBU R128."""

import math
from functools import cache
from typing import Any

import numpy as np

CEILING = -1.0  # dBFS that no peak passes where loudness is set
_SHORTEST = 0.4  # s: EBU R128 measures blocks of that length
_LEAST = -70.0  # LUFS: EBU R128 leaves out quieter blocks


def measure_loudness(wave: np.ndarray, sampling_rate: int) -> float:
    """The integrated loudness of ``wave`` (T,) by EBU R128, LUFS; the level, where it is too short or too quiet."""
    if len(wave) >= _SHORTEST * sampling_rate:
        loudness = float(loudness_meter(sampling_rate).integrated_loudness(wave))
        if loudness > _LEAST:
            return loudness
    return 10 * math.log10(max(float(np.mean(np.square(wave, dtype=np.float64))), 1e-12))


@cache
def loudness_meter(sampling_rate: int) -> Any:
    """The meter for a sampling rate (Hz)."""
    import pyloudnorm  # here, as it loads SciPy for a second

    return pyloudnorm.Meter(sampling_rate)
