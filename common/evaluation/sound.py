"""What a vocoder does to sound: its pulses and harmonicity beside a recording's; of a copy also PESQ, STOI and F0."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import parselmouth
import torch
from numpy.lib.stride_tricks import sliding_window_view
from scipy.fft import irfft, next_fast_len, rfft
from scipy.signal import butter, hilbert, sosfiltfilt

from common.audio import MelExtractor
from common.evaluation.metrics import F0_MIN, SpeechFrames, values_at_frames
from common.evaluation.packages import pesq, stoi

BANDS = {"low": (1500.0, 4000.0), "high": (4000.0, 8000.0)}  # Hz, in which pulses are looked for
PULSE_WINDOW = 0.032  # s
PULSE_LAGS = (0.002, 0.012)  # s, the periods of voices from 83 to 500 Hz
QUIETEST = 0.8  # of a whole recording's RMS: frames below have no pulse strength


@dataclass(frozen=True)
class SoundFigures:
    """A sound beside the recording of its words; NaN where there is nothing to measure, or without its package."""

    pulses_low: float = math.nan  # mean `pulse_strength` of voiced frames in BANDS["low"]
    unvoiced_low: float = math.nan  # that of unvoiced frames
    pulses_high: float = math.nan  # BANDS["high"]
    unvoiced_high: float = math.nan
    n_voiced: int = 0  # frames that these means are of
    n_unvoiced: int = 0
    harmonicity_bias_db: float = math.nan  # harmonics-to-noise ratio of voiced frames, less that of the recording
    pesq: float = math.nan  # this and what follows: only of a copy, which is compared moment by moment
    stoi: float = math.nan
    f0_median_cents: float = math.nan  # absolute error over frames that are voiced in both
    f0_mean_cents: float = math.nan
    voicing_error: float = math.nan  # share of frames that are voiced in one and not in the other
    mel_distance: float = math.nan  # mean absolute difference of the natural-log mels that the vocoder reads


def measure_sound(
    wave: np.ndarray, frames: SpeechFrames, *, sampling_rate: int, recording: tuple[np.ndarray, SpeechFrames] | None
) -> SoundFigures:
    """The figures of wave (T1,) with its frames beside a ``recording`` (T2,) at another pace, or beside none."""
    bias = math.nan
    if recording is not None:
        of_both = [
            _mean(harmonicity(one, its, sampling_rate=sampling_rate)[its.f0 > 0])
            for one, its in ((wave, frames), recording)
        ]
        bias = of_both[0] - of_both[1]
    pulses = _mean_pulses(wave, wave, frames, sampling_rate=sampling_rate)
    return SoundFigures(**pulses, harmonicity_bias_db=bias)


def measure_copy(
    copy: np.ndarray, made: SpeechFrames, recorded: tuple[np.ndarray, SpeechFrames], *, extractor: MelExtractor
) -> SoundFigures:
    """The figures of a copy (T,), whose frames are ``made``, of a ``recorded`` wave (T,) with its frames.

    They are compared sample for sample; ``extractor`` makes the mels that the copy is made of.
    """
    sampling_rate = extractor.config.sampling_rate
    recording, real = recorded
    both = (made.f0 > 0) & (real.f0 > 0)
    cents = np.abs(1200 * np.log2(made.f0[both] / real.f0[both]))
    mels = [extractor(torch.from_numpy(wave)[None]) for wave in (copy, recording)]
    hnr = [harmonicity(w, f, sampling_rate=sampling_rate) for w, f in ((copy, made), (recording, real))]
    return SoundFigures(
        **_mean_pulses(copy, recording, real, sampling_rate=sampling_rate),
        harmonicity_bias_db=_mean((hnr[0] - hnr[1])[both]),
        pesq=pesq(copy, recording, sampling_rate=sampling_rate),
        stoi=stoi(copy, recording, sampling_rate=sampling_rate),
        f0_median_cents=float(np.median(cents)) if len(cents) else math.nan,
        f0_mean_cents=_mean(cents),
        voicing_error=float(np.mean((made.f0 > 0) != (real.f0 > 0))),
        mel_distance=float((mels[0] - mels[1]).abs().mean()),
    )


def pulse_strength(
    wave: np.ndarray, recording: np.ndarray, *, times: np.ndarray, sampling_rate: int, band: tuple[float, float]
) -> np.ndarray:
    """How much the energy of wave (T,) in ``band`` (Hz) comes in pulses, at each of ``times`` (F,) in s: (F,).

    That is the highest value of the autocorrelation, at lags of 2 to 12 ms, of the band's envelope: Butterworth filter
    of order 4 in both directions, magnitude of the analytic signal, 32 ms less their mean times a Hann window, divided
    by the window's autocorrelation and by the value at lag 0. A pulse train has nearly 1, white noise 0.25 to 0.3. NaN
    where the 32 ms are not all in the wave, or their RMS in ``recording`` (T,) is below 0.8 of that of all of it.
    """
    size = round(PULSE_WINDOW * sampling_rate)
    starts = np.rint(times * sampling_rate).astype(int) - size // 2
    inside = (starts >= 0) & (starts + size <= min(len(wave), len(recording)))
    strength = np.full(len(times), math.nan)
    if not inside.any() or band[1] >= sampling_rate / 2:
        return strength
    power = np.square(sliding_window_view(recording.astype(np.float64), size)[starts[inside]]).mean(axis=1)
    inside[inside] = power >= QUIETEST**2 * np.square(recording.astype(np.float64)).mean()
    filtered = sosfiltfilt(butter(4, band, "bandpass", fs=sampling_rate, output="sos"), wave.astype(np.float64))
    envelope = np.abs(hilbert(filtered, next_fast_len(len(wave)))[: len(wave)])
    windows = sliding_window_view(envelope, size)[starts[inside]]
    window = np.hanning(size)
    first, last = (round(lag * sampling_rate) for lag in PULSE_LAGS)
    own, *correlations = _autocorrelation(np.vstack([window, (windows - windows.mean(axis=1, keepdims=True)) * window]))
    ratios = np.array(correlations).reshape(-1, size) / own
    strength[inside] = ratios[:, first : last + 1].max(axis=1) / np.maximum(ratios[:, 0], np.finfo(float).tiny)
    return strength


def harmonicity(wave: np.ndarray, frames: SpeechFrames, *, sampling_rate: int) -> np.ndarray:
    """Praat's harmonics-to-noise ratio (Boersma 1993) of wave (T,) in dB at ``frames`` (F,); NaN where it has none."""
    values = np.full(len(frames.f0), math.nan)
    if len(wave) / sampling_rate <= 3 / F0_MIN:
        return values
    sound = parselmouth.Sound(np.asarray(wave, dtype=np.float64), sampling_frequency=sampling_rate)
    track = sound.to_harmonicity_cc(time_step=frames.hop_s, minimum_pitch=F0_MIN)
    found = values_at_frames(track, track.values[0], n_frames=len(values), hop_s=frames.hop_s, outside=math.nan)
    return np.where(found > -200, found, math.nan)  # Praat's mark of silence


def _mean_pulses(
    wave: np.ndarray, recording: np.ndarray, frames: SpeechFrames, *, sampling_rate: int
) -> dict[str, Any]:
    """Mean pulse strengths and numbers of frames by the names of `SoundFigures`; ``frames`` say what is voiced."""
    times, voiced = np.arange(len(frames.f0)) * frames.hop_s, frames.f0 > 0
    figures: dict[str, Any] = {}
    for name, band in BANDS.items():
        strength = pulse_strength(wave, recording, times=times, sampling_rate=sampling_rate, band=band)
        figures |= {f"pulses_{name}": _mean(strength[voiced]), f"unvoiced_{name}": _mean(strength[~voiced])}
        known = ~np.isnan(strength)
        counts = {"n_voiced": int((known & voiced).sum()), "n_unvoiced": int((known & ~voiced).sum())}
        figures = counts | figures  # those of the lower band, which more sampling rates hold
    return figures


def _autocorrelation(rows: np.ndarray) -> np.ndarray:
    """Rows (R, T) -> their autocorrelations at lags 0 to T - 1 (R, T)."""
    size = rows.shape[1]
    spectrum = rfft(rows, next_fast_len(2 * size, real=True), axis=1)
    return irfft(np.abs(spectrum) ** 2, next_fast_len(2 * size, real=True), axis=1)[:, :size]


def _mean(values: np.ndarray) -> float:
    """The mean of the values that are no NaN; NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
