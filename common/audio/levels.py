"""Levels of a recording: the power of each frame, the part that isn't silent, and the loudness (EBU R128)."""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import binary_dilation, grey_opening

FRAME_SECONDS = 0.01  # s, the length of a frame
SHORTEST_SOUND = 3  # frames; a click isn't speech
SILENCE_BELOW = 40.0  # dB below the speech: always silence
NOISE_MARGIN = 10.0  # dB above the noise, below which a noisy recording is silent
LEAST_CONTRAST = 20.0  # dB, the least between speech and silence
# Weak fricatives and fading vowels beside louder speech:
WEAK_MARGIN, WEAK_BELOW = 1.0, 55.0  # dB above the noise at least, and below the speech at most
WEAK_FRAMES = 30  # at most
QUIETEST = -90.0  # dBFS; a quieter recording is silent
CEILING = -1.0  # dBFS, the highest peak after loudness normalization
_SHORTEST_BLOCK = 0.4  # s: EBU R128 measures blocks of that length
_LEAST = -70.0  # LUFS; EBU R128 ignores quieter blocks
_CLOSE_TO_PEAK = 1e-3  # share of the loudest frame's power; frames above it are speech or noises
_DIGITAL_SILENCE = 1e-7  # share of the speech's power; no microphone is that quiet


class Sounding(NamedTuple):
    """The part of a recording that isn't silent."""

    start: float  # s
    end: float  # s
    level: float  # dBFS, of the speech


class FrameLevels(NamedTuple):
    """The level of each 10 ms frame, and which frames aren't silent."""

    size: int  # samples of a frame
    powers: np.ndarray  # (F,) mean squares, without the recording's DC offset
    sounding: np.ndarray  # (F,) bool: above the threshold of silence for at least 30 ms
    weak: np.ndarray  # (F,) bool: loud enough for a weak sound beside those frames
    speech: float  # power of the speech; 0 if the recording is silent


def measure_frames(wave: np.ndarray, sampling_rate: int) -> FrameLevels:
    """Measure the frames of ``wave`` (T,) at ``sampling_rate`` Hz; T is at least 1."""
    size = min(max(1, round(FRAME_SECONDS * sampling_rate)), len(wave))
    frames = np.reshape(wave[: len(wave) // size * size], (-1, size))
    offsets = frames.mean(axis=1, keepdims=True)
    frames = frames - offsets
    moving = np.einsum("ft,ft->f", frames, frames, dtype=np.float64) / size
    powers = moving + np.square(offsets[:, 0] - wave.mean())
    steady = grey_opening(moving, min(SHORTEST_SOUND, len(moving)), mode="constant")
    if steady.max() <= _ratio(QUIETEST):
        silent = np.zeros(len(powers), bool)
        return FrameLevels(size, powers, silent, silent, 0.0)
    speech = float(np.percentile(steady[steady > steady.max() * _CLOSE_TO_PEAK], 95))
    noise = float(np.percentile(moving[moving > speech * _DIGITAL_SILENCE], 5))
    threshold = max(speech / _ratio(SILENCE_BELOW), min(noise * _ratio(NOISE_MARGIN), speech / _ratio(LEAST_CONTRAST)))
    weak = moving > max(noise * _ratio(WEAK_MARGIN), speech / _ratio(WEAK_BELOW))
    return FrameLevels(size, powers, steady > threshold, weak, speech)


def find_sound(wave: np.ndarray, sampling_rate: int) -> Sounding | None:
    """Find the part of ``wave`` (T,) at ``sampling_rate`` Hz that isn't silent (weak sounds included), if any."""
    if not len(wave):
        return None
    levels = measure_frames(wave, sampling_rate)
    sounding = np.flatnonzero(binary_dilation(levels.sounding, iterations=WEAK_FRAMES, mask=levels.weak)).tolist()
    if not sounding:
        return None
    seconds = levels.size / sampling_rate
    return Sounding(sounding[0] * seconds, (sounding[-1] + 1) * seconds, 10 * math.log10(levels.speech))


def _ratio(decibels: float) -> float:
    return float(10 ** (decibels / 10))


def measure_loudness(wave: np.ndarray, sampling_rate: int) -> float:
    """Return the integrated EBU R128 loudness of ``wave`` (T,) in LUFS, or its level if it's too short or quiet."""
    if len(wave) >= _SHORTEST_BLOCK * sampling_rate:
        loudness = float(loudness_meter(sampling_rate).integrated_loudness(wave))
        if loudness > _LEAST:
            return loudness
    return 10 * math.log10(max(float(np.mean(np.square(wave, dtype=np.float64))), 1e-12))


@cache
def loudness_meter(sampling_rate: int) -> Any:
    """Return the meter for a sampling rate (Hz)."""
    import pyloudnorm  # here, because importing it takes a second

    return pyloudnorm.Meter(sampling_rate)
