"""Compare audio with a recording of the same words: mel-cepstral distortion, pitch and voicing."""

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import librosa
import numpy as np
import torch
from scipy.fft import dct

from common.audio.mel import MelExtractor
from common.audio.pitch import AT_FRAMES, estimate_pitch
from common.config import AudioConfig
from common.errors import AudioError

N_COEFFICIENTS = 13  # of the mel-cepstrum, without c0 (the loudness)
DB_PER_NEPER = 10 * math.sqrt(2) / math.log(10)  # dB per unit of cepstral distance, see mean_distortion
FLOOR_DB = 60.0  # dB below the utterance's largest mel value; smaller values are raised to this level
SILENCE_DB = 50.0  # dB below the same value; frames with no band above this level are silent

N_MELS = 80
FFT_S, HOP_S = 0.046, 0.0116  # s, 1024 and 256 samples at 22050 Hz
MEL_FMAX = 8000.0  # Hz
PITCH_RANGE = 60.0, 500.0  # Hz, in which Praat searches for F0

Figures = dict[str, float]  # by keys of measures and of their weights; NaN: nothing to measure


@dataclass(frozen=True)
class Clip:
    """A wave and features of its frames, the first of which is at 0 s."""

    samples: np.ndarray  # (T,)
    sampling_rate: int  # Hz

    @property
    def audio(self) -> AudioConfig:
        """The settings of its mels."""
        rate = self.sampling_rate
        size, hop = 2 ** round(math.log2(FFT_S * rate)), round(HOP_S * rate)
        return AudioConfig(rate, size, hop, size, N_MELS, mel_fmax=min(MEL_FMAX, rate / 2))

    @cached_property
    def log_mel(self) -> np.ndarray:
        """The natural-log mel (N_MELS, F), relative to its largest value and floored at ``FLOOR_DB`` below it.

        Raises AudioError if the samples are empty, silent or not finite.
        """
        samples = np.asarray(self.samples, dtype=np.float32)
        if not samples.any() or not np.isfinite(samples).all():
            raise AudioError("a wave to compare is empty, silent or not finite")
        extractor = MelExtractor(self.audio)
        padded = np.pad(samples / np.abs(samples).max(), (extractor.pad_left, extractor.pad_right))
        log_mel = extractor.of_frames(torch.from_numpy(padded)[None])[0].numpy()
        return np.maximum(log_mel - log_mel.max(), -FLOOR_DB * math.log(10) / 20)

    @cached_property
    def f0(self) -> np.ndarray:
        """F0 (F,) in Hz by Praat's autocorrelation, 0 where unvoiced."""
        wave, audio, n_frames = self.samples, self.audio, self.log_mel.shape[1]
        with suppress(AudioError):  # too short for a pitch
            return estimate_pitch(wave, audio, n_frames=n_frames, method=AT_FRAMES, pitch_range=PITCH_RANGE)
        return np.zeros(n_frames)


@dataclass(frozen=True)
class SpeechComparison:
    """Two waves, and the pairs of their frames to compare."""

    reference: Clip
    synthesized: Clip
    pairs: np.ndarray  # (P, 2) frames of the reference and of the synthesized wave

    @property
    def aligned_reference(self) -> tuple[np.ndarray, np.ndarray]:
        """Log-mel (n_mels, F2) and F0 (F2,) of the reference at the synthesized frames; NaN and 0 if unpaired."""
        frames = np.arange(len(self.synthesized.f0))
        first = np.searchsorted(self.pairs[:, 1], frames).clip(max=len(self.pairs) - 1)  # first pair of each frame
        partners, paired = self.pairs[first, 0], self.pairs[first, 1] == frames
        return np.where(paired, self.reference.log_mel[:, partners], math.nan), self.reference.f0[partners] * paired

    @property
    def distance(self) -> Figures:
        """The differences between paired frames."""
        left, right = self.reference, self.synthesized
        first, second = left.f0[self.pairs[:, 0]], right.f0[self.pairs[:, 1]]
        both = (first > 0) & (second > 0)
        hertz, cents = first[both] - second[both], 1200 * np.log2(first[both] / second[both])
        return {
            "mcd_db": mean_distortion(left.log_mel, right.log_mel, self.pairs),
            "f0_rmse_hz": math.sqrt(np.square(hertz).mean()) if both.any() else math.nan,
            "f0_rmse_cents": math.sqrt(np.square(cents).mean()) if both.any() else math.nan,
            "f0_median_cents": float(np.median(np.abs(cents))) if both.any() else math.nan,
            "voicing_error": float(np.mean((first > 0) != (second > 0))),
        }


def aligned(reference: Clip, synthesized: Clip) -> SpeechComparison:
    """Align two waves of one sampling rate and any level; raises AudioError if one is empty, silent or not finite."""
    return SpeechComparison(reference, synthesized, speech_pairs(reference.log_mel, synthesized.log_mel))


def mel_cepstrum(log_mel: np.ndarray) -> np.ndarray:
    """Return coefficients 1 to N_COEFFICIENTS of each frame's cosine series: (n_mels, F) -> (F, N_COEFFICIENTS)."""
    series = dct(log_mel, type=2, norm="ortho", axis=0) * math.sqrt(2 / log_mel.shape[0])
    return series[1 : N_COEFFICIENTS + 1].T


def speech_pairs(reference: np.ndarray, synthesized: np.ndarray) -> np.ndarray:
    """Return aligned frame pairs (P, 2) of two floored log-mels, except pairs of silent frames.

    They lie on the cheapest monotonic path between the cepstra, from the first to the last frame of speech. With the
    silence before and after, a longer silence in one of them would be paired with speech.
    """
    spoken = [log_mel.max(axis=0) > -SILENCE_DB * math.log(10) / 20 for log_mel in (reference, synthesized)]
    (first, end), (second, second_end) = ((np.argmax(f), len(f) - np.argmax(f[::-1])) for f in spoken)
    cepstra = mel_cepstrum(reference[:, first:end]).T, mel_cepstrum(synthesized[:, second:second_end]).T
    _, path = librosa.sequence.dtw(*cepstra, metric="euclidean")
    pairs = path[::-1] + np.array([first, second])
    return pairs[spoken[0][pairs[:, 0]] | spoken[1][pairs[:, 1]]]


def mean_distortion(reference: np.ndarray, synthesized: np.ndarray, pairs: np.ndarray) -> float:
    """Return the mel-cepstral distortion in dB of floored log-mels (n_mels, F1) and (n_mels, F2) over aligned pairs.

    The mels are natural logarithms of amplitudes, and the mel-cepstrum is their cosine series. Then 10 sqrt(2) / ln 10
    times the distance between two cepstra is the difference between the two smoothed spectra in dB, as a root mean
    square over the mel axis (Kubichek 1993). It doesn't depend on the number of mel channels.
    """
    difference = mel_cepstrum(reference)[pairs[:, 0]] - mel_cepstrum(synthesized)[pairs[:, 1]]
    return float(DB_PER_NEPER * np.linalg.norm(difference, axis=1).mean())


def measure(made: Clip, recording: Clip, *, extractor: MelExtractor | None) -> tuple[Figures, SpeechComparison]:
    """Compare a sound with a recording of the same words; return the figures and the compared frames.

    A voice is aligned first by dynamic time warping, so that its pace doesn't matter. If the ``extractor`` of its mels
    is given, the sound is a copy of the recording and is compared frame by frame.
    """
    if extractor is None:
        comparison = aligned(recording, made)
        return comparison.distance, comparison
    made = Clip(librosa.util.fix_length(made.samples, size=len(recording.samples)), recording.sampling_rate)
    comparison = SpeechComparison(recording, made, np.arange(len(made.f0))[:, None].repeat(2, axis=1))
    mels = [extractor(torch.from_numpy(one.samples)[None]) for one in (made, recording)]
    return {**comparison.distance, "mel_distance": float((mels[0] - mels[1]).abs().mean())}, comparison
