"""How far sound is from a recording of the same words: mel-cepstral distortion, pitch and voicing."""

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
DB_PER_NEPER = 10 * math.sqrt(2) / math.log(10)  # dB a unit of cepstral distance, see mean_distortion
FLOOR_DB = 60.0  # dB below the utterance's loudest mel value: weaker values are raised to it
SILENCE_DB = 50.0  # dB below it: frames without a band louder than this are silence

N_MELS = 80
FFT_S, HOP_S = 0.046, 0.0116  # s, 1024 and 256 samples at 22050 Hz
MEL_FMAX = 8000.0  # Hz
PITCH_RANGE = 60.0, 500.0  # Hz, where Praat looks for F0

Figures = dict[str, float]  # by keys of the measures and of the weights of their means; NaN: nothing to measure


@dataclass(frozen=True)
class Clip:
    """A wave, and what is known of its frames, the first at 0 s."""

    samples: np.ndarray  # (T,)
    sampling_rate: int  # Hz

    @property
    def audio(self) -> AudioConfig:
        """What its mels are."""
        rate = self.sampling_rate
        size, hop = 2 ** round(math.log2(FFT_S * rate)), round(HOP_S * rate)
        return AudioConfig(rate, size, hop, size, N_MELS, mel_fmax=min(MEL_FMAX, rate / 2))

    @cached_property
    def log_mel(self) -> np.ndarray:
        """(N_MELS, F) natural log, relative to the largest value and limited to ``FLOOR_DB`` below it.

        Raises AudioError for samples that are missing, silent or not finite.
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
        """(F,) Hz by Praat's autocorrelation, 0 where unvoiced."""
        wave, audio, n_frames = self.samples, self.audio, self.log_mel.shape[1]
        with suppress(AudioError):  # too short for a pitch
            return estimate_pitch(wave, audio, n_frames=n_frames, method=AT_FRAMES, pitch_range=PITCH_RANGE)
        return np.zeros(n_frames)


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
        hertz, cents = first[both] - second[both], 1200 * np.log2(first[both] / second[both])
        return {
            "mcd_db": mean_distortion(left.log_mel, right.log_mel, self.pairs),
            "f0_rmse_hz": math.sqrt(np.square(hertz).mean()) if both.any() else math.nan,
            "f0_rmse_cents": math.sqrt(np.square(cents).mean()) if both.any() else math.nan,
            "f0_median_cents": float(np.median(np.abs(cents))) if both.any() else math.nan,
            "voicing_error": float(np.mean((first > 0) != (second > 0))),
        }


def aligned(reference: Clip, synthesized: Clip) -> SpeechComparison:
    """Two waves of one sampling rate, however loud, aligned; AudioError for one that is empty, silent or not finite."""
    return SpeechComparison(reference, synthesized, speech_pairs(reference.log_mel, synthesized.log_mel))


def mel_cepstrum(log_mel: np.ndarray) -> np.ndarray:
    """Coefficients 1 to N_COEFFICIENTS of the cosine series of each frame: (n_mels, F) -> (F, N_COEFFICIENTS)."""
    series = dct(log_mel, type=2, norm="ortho", axis=0) * math.sqrt(2 / log_mel.shape[0])
    return series[1 : N_COEFFICIENTS + 1].T


def speech_pairs(reference: np.ndarray, synthesized: np.ndarray) -> np.ndarray:
    """Aligned pairs (P, 2) of two floored log-mels, without those in which both frames are silence.

    They are on the cheapest monotonic path between the cepstra from the first to the last frame of speech: a longer
    silence at an end would be paired with speech.
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


def measure(made: Clip, recording: Clip, *, extractor: MelExtractor | None) -> tuple[Figures, SpeechComparison]:
    """Figures of a sound beside a recording of its words, and the frames that are compared.

    A voice is compared after alignment by dynamic time warping, so a different pace does not count. With the
    ``extractor`` of the mels that it was made of, a sound is a copy, compared moment by moment.
    """
    if extractor is None:
        comparison = aligned(recording, made)
        return comparison.distance, comparison
    made = Clip(librosa.util.fix_length(made.samples, size=len(recording.samples)), recording.sampling_rate)
    comparison = SpeechComparison(recording, made, np.arange(len(made.f0))[:, None].repeat(2, axis=1))
    mels = [extractor(torch.from_numpy(one.samples)[None]) for one in (made, recording)]
    return {**comparison.distance, "mel_distance": float((mels[0] - mels[1]).abs().mean())}, comparison
