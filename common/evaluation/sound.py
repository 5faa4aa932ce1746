"""What a vocoder does to sound: its pulses and harmonicity beside a recording's; of a copy also PESQ, STOI and F0."""

import math

import librosa
import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from scipy.fft import irfft, next_fast_len, rfft
from scipy.signal import butter, hilbert, sosfiltfilt

from common.audio import MelExtractor
from common.evaluation.metrics import Clip, Figures, SpeechComparison, aligned
from common.evaluation.packages import pesq, stoi

BANDS = {"low": (1500.0, 4000.0), "high": (4000.0, 8000.0)}  # Hz, in which pulses are looked for
PULSE_WINDOW = 0.032  # s
PULSE_LAGS = (0.002, 0.012)  # s, the periods of voices from 83 to 500 Hz
QUIETEST = 0.8  # of a whole recording's RMS: frames below have no pulse strength


def measure(
    made: Clip, recording: Clip | None, *, extractor: MelExtractor | None
) -> tuple[Figures, SpeechComparison | None]:
    """Figures of a sound beside a recording of its words, and the frames that are compared; or of a sound alone.

    With the ``extractor`` of the mels that it was made of, a sound is a copy, compared moment by moment.
    """
    if recording is None:
        return _mean_pulses(made, made), None
    if extractor is None:
        comparison = aligned(recording, made)
        own, real = (_mean(one.harmonicity[one.f0 > 0]) for one in (made, recording))
        return {**comparison.distance, **_mean_pulses(made, made), "harmonicity_bias_db": own - real}, comparison
    rate = recording.sampling_rate
    made = Clip(librosa.util.fix_length(made.samples, size=len(recording.samples)), rate)
    is_voiced = [one.f0 > 0 for one in (made, recording)]
    both = is_voiced[0] & is_voiced[1]
    cents = np.abs(1200 * np.log2(made.f0[both] / recording.f0[both]))
    mels = [extractor(torch.from_numpy(one.samples)[None]) for one in (made, recording)]
    figures = {
        **_mean_pulses(made, recording),
        "harmonicity_bias_db": _mean((made.harmonicity - recording.harmonicity)[both]),
        "pesq": pesq(made.samples, recording.samples, sampling_rate=rate),
        "stoi": stoi(made.samples, recording.samples, sampling_rate=rate),
        "f0_median_cents": float(np.median(cents)) if len(cents) else math.nan,
        "f0_mean_cents": _mean(cents),
        "voicing_error": float(np.mean(is_voiced[0] != is_voiced[1])),
        "mel_distance": float((mels[0] - mels[1]).abs().mean()),
    }
    return figures, SpeechComparison(recording, made, np.arange(len(made.f0))[:, None].repeat(2, axis=1))


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
    rows = np.vstack([window, (windows - windows.mean(axis=1, keepdims=True)) * window])
    n_fft = next_fast_len(2 * size, real=True)
    own, *correlations = irfft(np.abs(rfft(rows, n_fft, axis=1)) ** 2, n_fft, axis=1)[:, :size]
    ratios = np.array(correlations).reshape(-1, size) / own
    strength[inside] = ratios[:, first : last + 1].max(axis=1) / np.maximum(ratios[:, 0], np.finfo(float).tiny)
    return strength


def _mean_pulses(clip: Clip, recording: Clip) -> Figures:
    """Mean `pulse_strength` of a clip, and the numbers of frames; the ``recording`` says which are voiced."""
    voiced = recording.f0 > 0
    times = np.arange(len(voiced)) * recording.hop_s
    figures: Figures = {}
    for name, band in BANDS.items():
        strength = pulse_strength(
            clip.samples, recording.samples, times=times, sampling_rate=clip.sampling_rate, band=band
        )
        figures |= {f"pulses_{name}": _mean(strength[voiced]), f"unvoiced_{name}": _mean(strength[~voiced])}
        if name == "low":  # the band that more sampling rates hold
            known = ~np.isnan(strength)
            figures |= {"n_voiced": int((known & voiced).sum()), "n_unvoiced": int((known & ~voiced).sum())}
    return figures


def _mean(values: np.ndarray) -> float:
    """The mean of the values that are no NaN; NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
