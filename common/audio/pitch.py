"""Pitch from Praat or pYIN, one value per mel frame; its averages over symbols, and statistics to normalize it by."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.config import AudioConfig, from_plain
from common.errors import AudioError, InputError, at
from common.files import read_json

PITCH_FLOOR, PITCH_CEILING = 75.0, 600.0  # Hz, Praat's
PERIODS = 3.0  # of the lowest pitch, in Praat's analysis window
SHORTEST = PERIODS / PITCH_FLOOR  # s, the shortest clip
AT_FRAMES = "praat_at_frames"  # Praat, at the centers of mel frames; vocoders are trained with it
PYIN_FLOOR, PYIN_CEILING = 440 * 2 ** (-33 / 12), 440 * 2 ** (27 / 12)  # Hz, the notes C2 and C7
FLAT = 1e-6  # a standard deviation below this fraction of the mean is rounding error
TRICHAR_PARTS = 3


@dataclass(frozen=True)
class PitchStatistics:
    """Mean and standard deviation of voiced pitch, Hz."""

    mean: float
    std: float

    def __post_init__(self) -> None:
        if not (0 < self.mean < math.inf and 0 < self.std < math.inf):
            found = f"pitch statistics with mean {self.mean:g} and std {self.std:g} Hz"
            raise InputError(f"{found}: expected finite numbers above 0")


def pitch_limits(method: str, pitch_range: tuple[float | None, float | None]) -> tuple[float, float]:
    """Return the lowest and highest pitch (Hz) that an estimator finds; None in ``pitch_range``: its default."""
    floor, ceiling = (PYIN_FLOOR, PYIN_CEILING) if method == "pyin" else (PITCH_FLOOR, PITCH_CEILING)
    return pitch_range[0] or floor, pitch_range[1] or ceiling


def estimate_pitch(
    wave: np.ndarray,
    config: AudioConfig,
    *,
    n_frames: int,
    method: str = "praat",
    pitch_range: tuple[float | None, float | None] = (None, None),
    part: tuple[float, float] | None = None,
    where: str = "",
) -> np.ndarray:
    """wave (T,) in [-1, 1] -> pitch (n_frames,) float64 in Hz, 0 where unvoiced.

    ``method`` is "pyin", "praat" or `AT_FRAMES`. "praat" is Praat's autocorrelation method as in FastPitch 1.0
    (Lancucki, 2021, section 3): the time step is duration / (n_frames + 3), and value i is used for mel frame i, unless
    their numbers differ by more than one. Praat extracts ``part`` (start and end, s). Raises AudioError if the clip is
    too short for Praat.
    """
    limits = pitch_limits(method, pitch_range)
    if method == "pyin":
        return _pyin_pitch(wave, config, n_frames, *limits)
    import parselmouth  # Praat; here, because speaking doesn't need it

    hop, rate = config.hop_length, config.sampling_rate
    sound = parselmouth.Sound(np.asarray(wave, dtype=np.float64), rate)
    if part is not None:
        sound = sound.extract_part(*part)
    if sound.duration < PERIODS / limits[0]:
        wanted = f"pitch needs at least {PERIODS / limits[0]:.3f} s"
        raise AudioError(f"a clip of {sound.duration:.3f} s: too short, {wanted}{at(where)}")
    step = hop / rate if method == AT_FRAMES else sound.duration / (n_frames + 3)
    track = sound.to_pitch(time_step=step, pitch_floor=limits[0], pitch_ceiling=limits[1])
    values = track.selected_array["frequency"].astype(np.float64)
    if method == AT_FRAMES or abs(len(values) - n_frames) > 1:
        first = hop / 2 if method == AT_FRAMES and config.framing == "aligned" else 0  # samples
        centers = [track.get_value_at_time((first + hop * frame) / rate) for frame in range(n_frames)]
        return np.nan_to_num(np.array(centers, dtype=np.float64))
    return np.pad(values, (0, 1))[:n_frames]


def _pyin_pitch(wave: np.ndarray, config: AudioConfig, n_frames: int, low: float, high: float) -> np.ndarray:
    """Return pYIN's pitch (n_frames,) from ``low`` to ``high`` Hz, as in FastPitch 1.1 (Mauch & Dixon, 2014)."""
    import librosa  # here, because it takes a second

    values, _, _ = librosa.pyin(
        np.asarray(wave, dtype=np.float32),
        sr=config.sampling_rate,
        fmin=low,
        fmax=min(high, config.sampling_rate / 2),
        frame_length=max(config.filter_length, 2 * math.ceil(1.1 * config.sampling_rate / low) * (low < PYIN_FLOOR)),
        hop_length=config.hop_length,
    )
    return librosa.util.fix_length(np.nan_to_num(values), size=n_frames)


def average_pitch(pitch: np.ndarray, durations: np.ndarray) -> np.ndarray:
    """pitch (F,) in Hz, durations (L,) frames summing to F -> (L,): mean of each symbol's voiced frames, or 0."""
    ends = np.cumsum(durations)
    starts = ends - durations
    sums = np.concatenate(([0.0], np.cumsum(pitch)))
    counts = np.concatenate(([0], np.cumsum(pitch != 0)))
    voiced = counts[ends] - counts[starts]
    return (sums[ends] - sums[starts]) / np.maximum(voiced, 1) * (voiced > 0)


def split_durations(durations: np.ndarray, parts: int = TRICHAR_PARTS) -> np.ndarray:
    """durations (L,) -> (L * parts,): each split into nearly equal parts, the larger first (5 -> 2, 2, 1)."""
    offsets = np.arange(parts)
    return ((durations[:, None] + parts - 1 - offsets) // parts).reshape(-1)


def pitch_of_kind(kind: str, pitch: np.ndarray, durations: np.ndarray | None) -> np.ndarray:
    """Return frame pitch (F,) as ``pitch_mel`` (F,), ``pitch_char`` (L,) or ``pitch_trichar`` (3 L,)."""
    if kind == "pitch_mel":
        return pitch
    assert durations is not None
    return average_pitch(pitch, durations if kind == "pitch_char" else split_durations(durations))


def statistics(pitches: Iterable[np.ndarray]) -> PitchStatistics:
    """Return the mean and population standard deviation of all voiced (nonzero) pitch values, Hz."""
    values = np.concatenate([np.zeros(0), *pitches])
    voiced = values[values != 0]
    if len(voiced) == 0 or voiced.std() <= FLAT * voiced.mean():
        raise InputError(f"the {len(voiced)} voiced pitch values don't vary: there are no statistics to normalize by")
    return PitchStatistics(mean=float(voiced.mean()), std=float(voiced.std()))


def read_pitch_statistics(path: Path) -> PitchStatistics:
    """Read the JSON file that extract_mels.py writes next to ``pitch_char/``; raises InputError for other files."""
    found: PitchStatistics = from_plain(PitchStatistics, read_json(path), where=str(path))
    return found


def normalize(pitch: np.ndarray, by: PitchStatistics) -> np.ndarray:
    """Return (pitch - mean) / std where voiced; unvoiced stays 0."""
    return np.where(pitch != 0, (pitch - by.mean) / by.std, 0.0)
