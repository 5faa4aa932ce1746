"""Load recordings for the recognizer: resample and trim them, and perturb them for training."""

import math
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.random import Generator
from torch import Tensor

from common.audio.decoding import Decoded, decode
from common.audio.wav import CONTAINERS, open_wav, resample
from common.errors import AudioError, at
from common.files import check_file
from jasper.yaml_config import DatasetSettings, SpeedPerturbation

_FRAME, _HOP = 2048, 512  # samples over which loudness is measured when silence is trimmed
_SILENCE = 1e-6  # mean square relative to the loudest frame's: -60 dB
_FAINTEST = 1e-10  # lower mean squares count as this


def load_recording(path: Path, *, sampling_rate: int, trim: bool, where: str = "") -> Tensor:
    """Load a recording as (T,) float32 at ``sampling_rate`` Hz; ``trim`` removes silence at its ends.

    Raises AudioError that names ``where``.
    """
    blocks = [*_decode(path, where, sampling_rate).blocks]
    if not blocks:
        raise AudioError(f"{path}: no samples{at(where)}")
    wave = torch.from_numpy(np.concatenate(blocks))
    return wave[voiced_part(wave)] if trim else wave


def duration_of(path: Path, *, where: str = "") -> float:
    """Return a recording's duration in seconds, from its header if possible; raises AudioError."""
    with suppress(AudioError), open_wav(path) as file:
        if file.format in CONTAINERS:
            return float(file.frames / file.samplerate)
    found = _decode(path, where)
    return sum(map(len, found.blocks)) / found.sampling_rate


def _decode(path: Path, where: str, sampling_rate: int | None = None) -> Decoded:
    check_file(path, where=where, error=AudioError)
    return decode(path, sampling_rate=sampling_rate, name=f"{path}{at(where)}")


def change_speed(wave: Tensor, speed: float) -> Tensor:
    """(T,) -> (round(T / speed),): change tempo and pitch together, like SoX's ``speed``; above 1 is faster."""
    return resample(wave, ratio=1 / speed)


def voiced_part(wave: Tensor) -> slice:
    """Find the part of wave (T,) without silent ends, like librosa's ``trim``: frames within 60 dB of the loudest."""
    squares = np.square(wave.numpy(), dtype=np.float64)
    total = np.concatenate(([0.0], np.cumsum(squares)))
    starts = np.arange(0, len(squares) + 1, _HOP) - _FRAME // 2  # frames are centered on multiples of the hop
    sums = total[np.clip(starts + _FRAME, 0, len(squares))] - total[np.clip(starts, 0, len(squares))]
    loudness = np.maximum(sums / _FRAME, _FAINTEST)
    loud = np.flatnonzero(loudness > _SILENCE * loudness.max())
    start, end = int(loud[0]) * _HOP, min(int(loud[-1] + 1) * _HOP, len(squares))
    return slice(start, end) if start < end else slice(0, len(squares))


def perturb(wave: Tensor, settings: DatasetSettings, random: Generator) -> Tensor:
    """Change speed, loudness and position of wave (T,) at random."""
    if settings.speed_perturbation is not None:
        wave = change_speed(wave, draw_speed(settings.speed_perturbation, random))
    if (gain := settings.gain_perturbation) is not None:
        wave = wave * 10 ** (_draw(gain.p, gain.min_gain_dbfs, gain.max_gain_dbfs, random) / 20)
    if (moved := settings.shift_perturbation) is not None:
        milliseconds = _draw(moved.p, moved.min_shift_ms, moved.max_shift_ms, random)
        wave = shift(wave, math.floor(milliseconds * settings.sample_rate / 1000))
    return wave


def _draw(p: float, low: float, high: float, random: Generator) -> float:
    """Draw a number from a range with probability ``p``, else return 0."""
    return float(random.uniform(low, high)) if random.random() < p else 0.0


def draw_speed(settings: SpeedPerturbation, random: Generator) -> float:
    """Draw a rate from the range, or with ``discrete`` one of its ends or 1; 1 with probability 1 - ``p``."""
    if random.random() >= settings.p:
        return 1.0
    if settings.discrete:
        return float(random.choice([settings.min_rate, 1.0, settings.max_rate]))
    return float(random.uniform(settings.min_rate, settings.max_rate))


def shift(wave: Tensor, n_samples: int) -> Tensor:
    """Shift wave (T,) left by ``n_samples``, or right if negative, and pad it with zeros."""
    n_samples = max(min(n_samples, len(wave)), -len(wave))
    return F.pad(wave, (-n_samples, n_samples))  # a negative width crops
