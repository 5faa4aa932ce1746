"""How good sound is: its pulses and harmonicity, and beside a recording its distortion, pitch and voicing.

A voice is compared after alignment by dynamic time warping, so a different pace does not count; a copy, of which also
PESQ and STOI are known, moment by moment.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import librosa
import numpy as np
import parselmouth
import torch
from numpy.lib.stride_tricks import sliding_window_view
from scipy.fft import dct, irfft, next_fast_len, rfft
from scipy.signal import butter, hilbert, sosfiltfilt

from common.audio.mel import MelExtractor
from common.config import AudioConfig
from common.errors import AudioError
from common.evaluation.judges import pesq_and_stoi

N_COEFFICIENTS = 13  # of the mel-cepstrum, without c0 (the loudness)
DB_PER_NEPER = 10 * math.sqrt(2) / math.log(10)  # dB a unit of cepstral distance, see mean_distortion
FLOOR_DB = 60.0  # dB below the utterance's loudest mel value: weaker values are raised to it
SILENCE_DB = 50.0  # dB below it: frames without a band louder than this are silence

N_MELS = 80
FFT_S, HOP_S = 0.046, 0.0116  # s, 1024 and 256 samples at 22050 Hz
MEL_FMAX = 8000.0  # Hz
F0_MIN, F0_MAX = 60.0, 500.0  # Hz, where Praat looks for F0

BANDS = {"low": (1500.0, 4000.0), "high": (4000.0, 8000.0)}  # Hz, in which pulses are looked for
PULSE_WINDOW = 0.032  # s
PULSE_LAGS = (0.002, 0.012)  # s, the periods of voices from 83 to 500 Hz
QUIETEST = 0.8  # of a whole recording's RMS: frames below have no pulse strength


Figures = dict[str, float]  # by keys of the measures and of the weights of their means; NaN: nothing to measure


@dataclass(frozen=True)
class Clip:
    """A wave, and its frames ``hop_s`` apart from 0 s."""

    samples: np.ndarray  # (T,)
    sampling_rate: int  # Hz

    @property
    def audio(self) -> AudioConfig:
        """What its mels are."""
        rate = self.sampling_rate
        size, hop = 2 ** round(math.log2(FFT_S * rate)), round(HOP_S * rate)
        return AudioConfig(rate, size, hop, size, N_MELS, mel_fmax=min(MEL_FMAX, rate / 2))

    @property
    def times(self) -> np.ndarray:
        """(F,) s, the centers of the frames."""
        return np.arange(self.log_mel.shape[1]) * (self.audio.hop_length / self.sampling_rate)

    @cached_property
    def log_mel(self) -> np.ndarray:
        """(N_MELS, F) natural log, relative to the largest value and limited to ``FLOOR_DB`` below it.

        Raises AudioError for samples that are missing, silent or not finite.
        """
        samples = np.asarray(self.samples, dtype=np.float32)
        if not samples.any() or not np.isfinite(samples).all():
            raise AudioError("a wave to compare is empty, silent or not finite")
        mel = librosa.feature.melspectrogram(
            y=samples,
            sr=self.sampling_rate,
            n_fft=self.audio.filter_length,
            hop_length=self.audio.hop_length,
            n_mels=N_MELS,
            fmax=self.audio.mel_fmax,
            power=1.0,
            pad_mode="constant",
        )
        log_mel = np.log(np.maximum(mel, np.finfo(np.float32).tiny))
        return np.maximum(log_mel - log_mel.max(), -FLOOR_DB * math.log(10) / 20)

    @cached_property
    def f0(self) -> np.ndarray:
        """(F,) Hz by Praat's autocorrelation, 0 where unvoiced."""
        return np.nan_to_num(self._at_frames("to_pitch_ac", pitch_floor=F0_MIN, pitch_ceiling=F0_MAX))

    @cached_property
    def harmonicity(self) -> np.ndarray:
        """(F,) Praat's harmonics-to-noise ratio (Boersma 1993) in dB; NaN where it has none."""
        values = self._at_frames("to_harmonicity_cc", minimum_pitch=F0_MIN)
        return np.where(values > -200, values, math.nan)  # -200 is Praat's mark of silence

    def _at_frames(self, method: str, **settings: float) -> np.ndarray:
        """What a ``method`` of Praat finds nearest to the frames (F,); NaN where that is nothing."""
        if len(self.samples) / self.sampling_rate <= 3 / F0_MIN:  # Praat needs three periods
            return np.full(len(self.times), math.nan)
        sound = parselmouth.Sound(np.asarray(self.samples, np.float64), sampling_frequency=self.sampling_rate)
        track = getattr(sound, method)(time_step=self.audio.hop_length / self.sampling_rate, **settings)
        values = track.selected_array["frequency"] if isinstance(track, parselmouth.Pitch) else track.values[0]
        nearest = np.rint((self.times - track.x1) / track.dx).astype(int)
        inside = (nearest >= 0) & (nearest < len(values))
        return np.where(inside, values[np.clip(nearest, 0, len(values) - 1)], math.nan)


@dataclass(frozen=True)
class SpeechComparison:
    """Two waves, and which of their frames are compared."""

    reference: Clip
    synthesized: Clip
    pairs: np.ndarray  # (P, 2) frames of the reference and of the synthesized wave

    @property
    def aligned_reference(self) -> tuple[np.ndarray, np.ndarray]:
        """Log-mel (n_mels, F2) and F0 (F2,) of the reference at the synthesized frames; NaN and 0 where it has none."""
        frames = np.arange(len(self.synthesized.f0))
        first = np.searchsorted(self.pairs[:, 1], frames).clip(max=len(self.pairs) - 1)  # of the pairs of a frame
        partners, paired = self.pairs[first, 0], self.pairs[first, 1] == frames
        return np.where(paired, self.reference.log_mel[:, partners], math.nan), self.reference.f0[partners] * paired

    @property
    def distance(self) -> Figures:
        """How far the frames of the pairs are from each other."""
        left, right = self.reference, self.synthesized
        first, second = left.f0[self.pairs[:, 0]], right.f0[self.pairs[:, 1]]
        both = (first > 0) & (second > 0)
        return {
            "mcd_db": mean_distortion(left.log_mel, right.log_mel, self.pairs),
            "f0_rmse_hz": math.sqrt(_mean(np.square(first[both] - second[both]))),
            "f0_rmse_cents": math.sqrt(_mean(np.square(1200 * np.log2(first[both] / second[both])))),
            "voicing_error": float(np.mean((first > 0) != (second > 0))),
        }


def compare_speech(reference: np.ndarray, synthesized: np.ndarray, *, sampling_rate: int) -> Figures:
    """The distance of wave ``synthesized`` (T2,) from wave ``reference`` (T1,), both of ``sampling_rate`` Hz.

    Loudness does not count: each wave is measured relative to its own loudest moment. Raises AudioError for a wave
    that is empty, silent or not finite.
    """
    return aligned(Clip(reference, sampling_rate), Clip(synthesized, sampling_rate)).distance


def aligned(reference: Clip, synthesized: Clip) -> SpeechComparison:
    """The frames of two waves, aligned."""
    return SpeechComparison(reference, synthesized, speech_pairs(reference.log_mel, synthesized.log_mel))


def mel_cepstrum(log_mel: np.ndarray) -> np.ndarray:
    """Coefficients 1 to N_COEFFICIENTS of the cosine series of each frame: (n_mels, F) -> (F, N_COEFFICIENTS)."""
    series = dct(log_mel, type=2, norm="ortho", axis=0) * math.sqrt(2 / log_mel.shape[0])
    return series[1 : N_COEFFICIENTS + 1].T


def speech_pairs(reference: np.ndarray, synthesized: np.ndarray) -> np.ndarray:
    """Aligned pairs (P, 2) of two floored log-mels, without those in which both frames are silence.

    They are on the cheapest monotonic path between the cepstra. Silence before the first and after the last frame of
    speech is left out first; otherwise a longer one would be paired with speech.
    """
    spoken = [log_mel.max(axis=0) > -SILENCE_DB * math.log(10) / 20 for log_mel in (reference, synthesized)]
    (first, end), (second, second_end) = ((np.argmax(f), len(f) - np.argmax(f[::-1])) for f in spoken)
    cepstra = mel_cepstrum(reference[:, first:end]).T, mel_cepstrum(synthesized[:, second:second_end]).T
    _, path = librosa.sequence.dtw(*cepstra, metric="euclidean")
    pairs = path[::-1] + np.array([first, second])
    return pairs[spoken[0][pairs[:, 0]] | spoken[1][pairs[:, 1]]]


def mean_distortion(reference: np.ndarray, synthesized: np.ndarray, pairs: np.ndarray) -> float:
    """Mel-cepstral distortion in dB of two floored log-mels (n_mels, F1) and (n_mels, F2), over aligned pairs.

    Natural logarithms of amplitudes. With the mel-cepstrum as the cosine series of the log amplitude,
    10 sqrt(2) / ln 10 times the distance of two cepstra is the root mean square over the mel axis of the
    difference of the two smoothed spectra in dB (Kubichek 1993), whatever the number of mel channels.
    """
    difference = mel_cepstrum(reference)[pairs[:, 0]] - mel_cepstrum(synthesized)[pairs[:, 1]]
    return float(DB_PER_NEPER * np.linalg.norm(difference, axis=1).mean())


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
        **pesq_and_stoi(made.samples, recording.samples, sampling_rate=rate),
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
    where: dict[str, Any] = {"times": recording.times, "sampling_rate": clip.sampling_rate}
    found = {name: pulse_strength(clip.samples, recording.samples, band=one, **where) for name, one in BANDS.items()}
    known = ~np.isnan(found["low"])  # the band that more sampling rates hold
    figures: Figures = {"n_voiced": int((known & voiced).sum()), "n_unvoiced": int((known & ~voiced).sum())}
    for name, strength in found.items():
        figures |= {f"pulses_{name}": _mean(strength[voiced]), f"unvoiced_{name}": _mean(strength[~voiced])}
    return figures


def _mean(values: np.ndarray) -> float:
    """The mean of the values that are no NaN; NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan
