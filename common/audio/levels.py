"""The levels of a recording: of each frame, the first and last one that is not silence, and the loudness (EBU R128)."""

import math
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import grey_opening, uniform_filter1d

FRAME_SECONDS = 0.01  # s over which a level is taken
SHORTEST_SOUND = 3  # frames: a click is no speech
SILENCE_BELOW = 40.0  # dB below the speech: always silence
NOISE_MARGIN = 10.0  # dB above the noise at most, where a noisy recording has its silence
LEAST_CONTRAST = 20.0  # dB between speech and silence at least: quieter sounds of speech are no silence
# Weak fricatives and fading vowels beside louder speech:
WEAK_MARGIN, WEAK_BELOW = 2.0, 55.0  # dB above a band's noise at least, and below the speech at most
WEAK_SECONDS = 0.3  # s that these last at most
BANDS = (60.0, 600.0, 1500.0, 4000.0, 20000.0)  # Hz, limits of the bands
QUIETEST = -90.0  # dBFS: below, a recording is silent
CEILING = -1.0  # dBFS that no peak passes where loudness is set
_SHORTEST_BLOCK = 0.4  # s: EBU R128 measures blocks of that length
_LEAST = -70.0  # LUFS: EBU R128 leaves out quieter blocks
_CLOSE_TO_PEAK = 1e-3  # of the loudest frame's power: louder ones are speech, or a slammed door
_DIGITAL_SILENCE = 1e-7  # of the speech's power: no microphone is that quiet


class Sounding(NamedTuple):
    """The part of a recording that sounds."""

    start: float  # s
    end: float  # s
    level: float  # dBFS, of the speech


class FrameLevels(NamedTuple):
    """The level of each frame of 10 ms, and which of them sound."""

    frames: np.ndarray  # (F, size), each without its mean: no rumble
    powers: np.ndarray  # (F,) mean squares, the recording's direct current left out
    sounding: np.ndarray  # (F,) bool: louder than noise and speech allow for silence, for at least 30 ms
    speech: float  # power of the speech; 0 where the recording is silent


def measure_frames(wave: np.ndarray, sampling_rate: int) -> FrameLevels:
    """Find the frames of ``wave`` (T,), Hz, that sound; T may be any length but 0."""
    size = min(max(1, round(FRAME_SECONDS * sampling_rate)), len(wave))
    frames = np.reshape(wave[: len(wave) // size * size], (-1, size))
    offsets = frames.mean(axis=1, keepdims=True)
    frames = frames - offsets
    moving = np.einsum("ft,ft->f", frames, frames, dtype=np.float64) / size
    powers = moving + np.square(offsets[:, 0] - wave.mean())
    steady = grey_opening(moving, min(SHORTEST_SOUND, len(moving)), mode="constant")
    if steady.max() <= _ratio(QUIETEST):
        return FrameLevels(frames, powers, np.zeros(len(powers), bool), 0.0)
    speech = float(np.percentile(steady[steady > steady.max() * _CLOSE_TO_PEAK], 95))
    noise = float(np.percentile(moving[moving > speech * _DIGITAL_SILENCE], 5))
    threshold = max(speech / _ratio(SILENCE_BELOW), min(noise * _ratio(NOISE_MARGIN), speech / _ratio(LEAST_CONTRAST)))
    return FrameLevels(frames, powers, steady > threshold, speech)


def find_sound(wave: np.ndarray, sampling_rate: int) -> Sounding | None:
    """Where ``wave`` (T,), Hz, begins and ceases to sound, weak sounds at its ends included; None if it is silent."""
    if not len(wave):
        return None
    frames, powers, is_sounding, speech = measure_frames(wave, sampling_rate)
    if not is_sounding.any():
        return None
    sounding = np.flatnonzero(is_sounding)
    bands = uniform_filter1d(_band_powers(frames, sampling_rate), 5, axis=0, mode="nearest")
    floors = np.percentile(bands[powers > speech * _DIGITAL_SILENCE], 5, axis=0) * _ratio(WEAK_MARGIN)
    weak = (bands > np.maximum(floors, speech / _ratio(WEAK_BELOW))).any(axis=1)
    first, last, most = int(sounding[0]), int(sounding[-1]), round(WEAK_SECONDS / FRAME_SECONDS)
    start, end, size = first, last, frames.shape[1]
    while start > max(first - most, 0) and weak[start - 1]:
        start -= 1
    while end < min(last + most, len(powers) - 1) and weak[end + 1]:
        end += 1
    return Sounding(start * size / sampling_rate, (end + 1) * size / sampling_rate, 10 * math.log10(speech))


def _band_powers(frames: np.ndarray, sampling_rate: int) -> np.ndarray:
    """frames (F, T) -> their mean squares in BANDS (F, bands)."""
    size = frames.shape[1]
    spectra = np.square(np.abs(np.fft.rfft(frames * np.hanning(size).astype(np.float32)))) * (16 / 3 / size**2)
    edges = np.searchsorted(np.fft.rfftfreq(size, 1 / sampling_rate), BANDS)
    return np.stack([spectra[:, low:high].sum(axis=1) for low, high in pairwise(edges) if high > low], axis=1)


def _ratio(decibels: float) -> float:
    return float(10 ** (decibels / 10))


def measure_loudness(wave: np.ndarray, sampling_rate: int) -> float:
    """The integrated loudness of ``wave`` (T,) by EBU R128, LUFS; the level, where it is too short or too quiet."""
    if len(wave) >= _SHORTEST_BLOCK * sampling_rate:
        loudness = float(loudness_meter(sampling_rate).integrated_loudness(wave))
        if loudness > _LEAST:
            return loudness
    return 10 * math.log10(max(float(np.mean(np.square(wave, dtype=np.float64))), 1e-12))


@cache
def loudness_meter(sampling_rate: int) -> Any:
    """The meter for a sampling rate (Hz)."""
    import pyloudnorm  # here, as it loads SciPy for a second

    return pyloudnorm.Meter(sampling_rate)
