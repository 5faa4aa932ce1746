"""How far synthesized speech is from a reference recording: mel-cepstral distortion and F0 error.

Both are measured after alignment by dynamic time warping, so a different pace does not count.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import librosa
import numpy as np
import parselmouth
from scipy.fft import dct

from common.errors import AudioError

N_COEFFICIENTS = 13  # of the mel-cepstrum, without c0 (the loudness)
DB_PER_NEPER = 10 * math.sqrt(2) / math.log(10)  # dB a unit of cepstral distance, see mean_distortion
FLOOR_DB = 60.0  # dB below the utterance's loudest mel value: weaker values are raised to it
SILENCE_DB = 50.0  # dB below it: frames without a band louder than this are silence

N_MELS = 80
FFT_S, HOP_S = 0.046, 0.0116  # s, 1024 and 256 samples at 22050 Hz
MEL_FMAX = 8000.0  # Hz
F0_MIN, F0_MAX = 60.0, 500.0  # Hz, where Praat looks for F0


@dataclass(frozen=True)
class SpeechDistance:
    """Figures of `compare_speech`, over aligned pairs of frames that are not both silence."""

    mcd_db: float  # mel-cepstral distortion
    voicing_error: float  # share of pairs that are voiced in one and unvoiced in the other
    n_pairs: int
    f0_rmse_hz: float = math.nan  # over pairs voiced in both; NaN if there are none
    f0_rmse_cents: float = math.nan  # likewise


@dataclass(frozen=True)
class SpeechFrames:
    """Frames of a wave, ``hop_s`` apart from 0 s."""

    log_mel: np.ndarray  # (N_MELS, F) natural log, 0 at its largest value, floored
    f0: np.ndarray  # (F,) Hz, 0 where unvoiced
    hop_s: float  # s
    fmax: float = MEL_FMAX  # Hz, the upper end of the last mel band


@dataclass(frozen=True)
class Clip:
    """A wave with its frames."""

    samples: np.ndarray  # (T,)
    sampling_rate: int  # Hz

    @cached_property
    def frames(self) -> SpeechFrames:
        """Its frames; raises as `speech_frames`."""
        return speech_frames(self.samples, sampling_rate=self.sampling_rate)


@dataclass(frozen=True)
class SpeechComparison:
    """Two waves, and which of their frames are compared."""

    reference: SpeechFrames
    synthesized: SpeechFrames
    pairs: np.ndarray  # (P, 2) frames of the reference and of the synthesized wave

    @cached_property
    def distance(self) -> SpeechDistance:
        """How far the frames of the pairs are from each other."""
        left, right = self.reference, self.synthesized
        first, second = left.f0[self.pairs[:, 0]], right.f0[self.pairs[:, 1]]
        both = (first > 0) & (second > 0)
        return SpeechDistance(
            mcd_db=mean_distortion(left.log_mel, right.log_mel, self.pairs),
            f0_rmse_hz=_root_mean_square(first[both] - second[both]),
            f0_rmse_cents=_root_mean_square(1200 * np.log2(first[both] / second[both])),
            voicing_error=float(np.mean((first > 0) != (second > 0))),
            n_pairs=len(self.pairs),
        )


def compare_speech(reference: np.ndarray, synthesized: np.ndarray, *, sampling_rate: int) -> SpeechDistance:
    """The distance of wave ``synthesized`` (T2,) from wave ``reference`` (T1,), both of ``sampling_rate`` Hz.

    Loudness does not count: each wave is measured relative to its own loudest moment. Raises AudioError for a wave
    that is empty, silent or not finite.
    """
    left, right = (speech_frames(wave, sampling_rate=sampling_rate) for wave in (reference, synthesized))
    return compare_frames(left, right).distance


def compare_frames(reference: SpeechFrames, synthesized: SpeechFrames) -> SpeechComparison:
    """The frames of two waves, aligned."""
    return SpeechComparison(reference, synthesized, speech_pairs(reference.log_mel, synthesized.log_mel))


def speech_frames(wave: np.ndarray, *, sampling_rate: int) -> SpeechFrames:
    """The frames of wave (T,); raises AudioError if it is empty, silent or not finite."""
    samples = np.asarray(wave, dtype=np.float32)
    if not samples.any() or not np.isfinite(samples).all():
        raise AudioError("a wave to compare is empty, silent or not finite")
    hop_length, fmax = round(HOP_S * sampling_rate), min(MEL_FMAX, sampling_rate / 2)
    mel = librosa.feature.melspectrogram(
        y=samples,
        sr=sampling_rate,
        n_fft=2 ** round(math.log2(FFT_S * sampling_rate)),
        hop_length=hop_length,
        n_mels=N_MELS,
        fmax=fmax,
        power=1.0,
        pad_mode="constant",
    )
    log_mel = np.log(np.maximum(mel, np.finfo(np.float32).tiny))
    f0 = frame_f0(wave, sampling_rate=sampling_rate, n_frames=log_mel.shape[1])
    return SpeechFrames(floored(log_mel), f0, hop_length / sampling_rate, fmax)


def mel_cepstrum(log_mel: np.ndarray, *, n_coefficients: int = N_COEFFICIENTS) -> np.ndarray:
    """Coefficients 1 to ``n_coefficients`` of the cosine series of each frame: (n_mels, F) -> (F, n_coefficients)."""
    n_mels = log_mel.shape[0]
    series = dct(log_mel, type=2, norm="ortho", axis=0) * math.sqrt(2 / n_mels)
    return series[1 : n_coefficients + 1].T


def floored(log_mel: np.ndarray) -> np.ndarray:
    """The log-mel relative to its largest value (0), limited to ``FLOOR_DB`` below it; (n_mels, F), natural log."""
    return np.maximum(log_mel - log_mel.max(), -FLOOR_DB * math.log(10) / 20)


def align(reference: np.ndarray, synthesized: np.ndarray) -> np.ndarray:
    """Pairs of frames (P, 2) on the cheapest monotonic path between two cepstra (F1, C) and (F2, C)."""
    _, path = librosa.sequence.dtw(reference.T, synthesized.T, metric="euclidean")
    return path[::-1]


def frame_f0(wave: np.ndarray, *, sampling_rate: int, n_frames: int) -> np.ndarray:
    """F0 in Hz by Praat's autocorrelation at frames ``HOP_S`` apart from 0 s: (T,) -> (n_frames,), 0 if unvoiced."""
    hop_s = round(HOP_S * sampling_rate) / sampling_rate
    if len(wave) / sampling_rate <= 3 / F0_MIN:  # Praat needs three periods
        return np.zeros(n_frames)
    sound = parselmouth.Sound(np.asarray(wave, dtype=np.float64), sampling_frequency=sampling_rate)
    pitch = sound.to_pitch_ac(time_step=hop_s, pitch_floor=F0_MIN, pitch_ceiling=F0_MAX)
    return values_at_frames(pitch, pitch.selected_array["frequency"], n_frames=n_frames, hop_s=hop_s, outside=0.0)


def values_at_frames(track: Any, values: np.ndarray, *, n_frames: int, hop_s: float, outside: float) -> np.ndarray:
    """The values (N,) of Praat's ``track`` that are nearest to frames ``hop_s`` apart from 0 s: (n_frames,)."""
    nearest = np.rint((np.arange(n_frames) * hop_s - track.x1) / track.dx).astype(int)
    inside = (nearest >= 0) & (nearest < len(values))
    return np.where(inside, values[np.clip(nearest, 0, len(values) - 1)], outside)


def speech_pairs(reference: np.ndarray, synthesized: np.ndarray) -> np.ndarray:
    """Aligned pairs (P, 2) of two floored log-mels, without those in which both frames are silence.

    Silence before the first and after the last frame of speech is left out first; otherwise a longer one would be
    paired with speech.
    """
    spoken = [log_mel.max(axis=0) > -SILENCE_DB * math.log(10) / 20 for log_mel in (reference, synthesized)]
    (first, end), (second, second_end) = ((np.argmax(f), len(f) - np.argmax(f[::-1])) for f in spoken)
    pairs = align(mel_cepstrum(reference[:, first:end]), mel_cepstrum(synthesized[:, second:second_end]))
    pairs = pairs + np.array([first, second])
    return pairs[spoken[0][pairs[:, 0]] | spoken[1][pairs[:, 1]]]


def mean_distortion(reference: np.ndarray, synthesized: np.ndarray, pairs: np.ndarray) -> float:
    """Mel-cepstral distortion in dB of two floored log-mels (n_mels, F1) and (n_mels, F2), over aligned pairs.

    Natural logarithms of amplitudes. With the mel-cepstrum as the cosine series of the log amplitude,
    10 sqrt(2) / ln 10 times the distance of two cepstra is the root mean square over the mel axis of the
    difference of the two smoothed spectra in dB (Kubichek 1993), whatever the number of mel channels.
    """
    difference = mel_cepstrum(reference)[pairs[:, 0]] - mel_cepstrum(synthesized)[pairs[:, 1]]
    return float(DB_PER_NEPER * np.linalg.norm(difference, axis=1).mean())


def _root_mean_square(values: np.ndarray) -> float:
    return math.sqrt(np.mean(np.square(values))) if len(values) else math.nan
