"""Mel-spectrograms in both framings, and their inversion with Griffin-Lim."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import TypeVar
from warnings import warn

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.config import AudioConfig
from common.errors import AudioError

MAGNITUDE_FLOOR = 1e-5  # smallest mel magnitude
SILENT_MEL = math.log(MAGNITUDE_FLOOR)  # -11.51, the value of digital silence
ALIGNED_EPSILON = 1e-9  # added under the magnitude's root in the aligned framing, as in HiFi-GAN
_INVERSION_STEPS = 60  # of non-negative least squares; by then, the mel's error is below Griffin-Lim's
_MOMENTUM = 0.99  # of Griffin-Lim, as in librosa
CENTERED_FLOOR = 1e-30  # keeps the root's gradient finite; far below MAGNITUDE_FLOOR, so values don't change

Count = TypeVar("Count", int, Tensor)


def hz_to_mel(hz: np.ndarray) -> np.ndarray:
    """Slaney's mel scale: linear up to 1000 Hz (15 mel), logarithmic above. Source: Auditory Toolbox (1998)."""
    return np.where(hz < 1000, hz * 3 / 200, 15 + 27 * np.log(np.maximum(hz, 1000) / 1000) / np.log(6.4))


def mel_filters(sampling_rate: int, n_fft: int, n_mels: int, *, low: float, high: float | None) -> Tensor:
    """Return triangles of equal area (n_mels, 1 + n_fft / 2), evenly spaced in mel; ``high`` None: half the rate."""
    lowest, highest = hz_to_mel(np.array([low, sampling_rate / 2 if high is None else high]))
    mels = np.linspace(lowest, highest, n_mels + 2)
    edges = np.where(mels < 15, mels * 200 / 3, 1000 * np.exp((mels - 15) * np.log(6.4) / 27))[:, None]
    bins = np.arange(1 + n_fft // 2) * sampling_rate / n_fft
    rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    triangles = np.maximum(np.minimum(rising, falling), 0).astype(np.float32)
    if n_silent := int((triangles.max(axis=1) == 0).sum()):
        warn(f"{n_silent} of {n_mels} mel channels are always silent: an FFT of {n_fft} has no bin there", stacklevel=2)
    return torch.from_numpy(triangles * (2 / (edges[2:] - edges[:-2]))).float()


def compress(magnitude: Tensor) -> Tensor:
    """Dynamic range compression, ln(max(x, 1e-5)), any shape."""
    return torch.log(torch.clamp(magnitude, min=MAGNITUDE_FLOOR))


def energy(mel: Tensor) -> Tensor:
    """L2 norm over the channels of a log-mel-spectrogram: mel (..., n_mels, F) -> (..., F), as in FastPitch 1.1."""
    return torch.linalg.vector_norm(mel, dim=-2)


class MelExtractor(nn.Module):
    """wave -> log-mel-spectrogram as ``AudioConfig`` describes it; differentiable, float32 even under autocast.

    Source: Shen et al., Natural TTS Synthesis by Conditioning WaveNet (2018), section 2.1, and Kong et al., HiFi-GAN
    (2020), section 3.4, for the aligned framing.
    """

    mel_basis: Tensor  # (n_mels, bins)
    window: Tensor  # (filter_length,)

    def __init__(self, config: AudioConfig) -> None:
        super().__init__()
        self.config = config
        padding = config.filter_length if config.framing == "centered" else config.filter_length - config.hop_length
        self.pad_left = padding // 2  # samples
        self.pad_right = padding - padding // 2  # samples
        self.min_samples = max(self.pad_left, self.pad_right) + 1  # reflection does not repeat the edge
        rate, size = config.sampling_rate, config.filter_length
        basis = mel_filters(rate, size, config.n_mels, low=config.mel_fmin, high=config.mel_fmax)
        used = basis.amax(dim=0).nonzero()
        n_bins = int(used[-1]) + 1 if len(used) else 1  # no filter reaches the bins above mel_fmax
        self.register_buffer("mel_basis", basis[:, :n_bins].contiguous(), persistent=False)
        self.register_buffer("window", hann_window(config), persistent=False)

    def n_frames(self, n_samples: Count) -> Count:
        """Return the number of frames in ``n_samples``: 1 + T // hop (centered) or T // hop (aligned)."""
        return n_samples // self.config.hop_length + (1 if self.config.framing == "centered" else 0)

    def forward(self, wave: Tensor, lengths: Tensor | None = None) -> Tensor:
        """wave (B, T) in [-1, 1], lengths (B,) samples -> mel (B, n_mels, F), zero in frames past an utterance's end.

        An utterance's mel doesn't depend on its batch. Raises AudioError if the wave is too short to reflect.
        """
        if wave.shape[1] < self.min_samples:
            raise AudioError(f"a clip of {wave.shape[1]} samples: too short, a frame needs at least {self.min_samples}")
        with torch.autocast(wave.device.type, enabled=False), full_precision_products():
            wave = wave.float()
            if lengths is not None:
                past_end = torch.arange(wave.shape[1], device=wave.device) >= lengths[:, None]
                wave = wave.masked_fill(past_end, 0.0)
            if self.config.peak is not None:
                largest = wave.abs().amax(dim=1, keepdim=True)
                wave = wave / largest.masked_fill(largest == 0, 1.0) * self.config.peak  # silence stays silent
            n_padded = self.pad_left + wave.shape[1] + self.pad_right
            if lengths is None:
                padded = F.pad(wave[:, None], (self.pad_left, self.pad_right), mode="reflect")[:, 0]
            else:  # reflect each row at its own end
                padded = reflected(wave, lengths, before=self.pad_left, n_samples=n_padded)
            mel = self.of_frames(padded)
        if lengths is not None:
            past_end = torch.arange(mel.shape[2], device=mel.device) >= self.n_frames(lengths)[:, None]
            mel = mel.masked_fill(past_end[:, None], 0.0)
        return mel

    def of_frames(self, padded: Tensor) -> Tensor:
        """padded (B, P) float32, starting with the first frame -> log-mel (B, n_mels, F)."""
        frames = padded.unfold(1, self.config.filter_length, self.config.hop_length) * self.window
        return self.of_spectrum(torch.fft.rfft(frames))

    def of_spectrum(self, spectrum: Tensor) -> Tensor:
        """Fourier transforms of windowed frames (B, F, bins) -> log-mel (B, n_mels, F)."""
        spectrum = spectrum[..., : self.mel_basis.shape[1]]
        power = spectrum.real.square() + spectrum.imag.square()
        power = power.clamp(min=CENTERED_FLOOR) if self.config.framing == "centered" else power + ALIGNED_EPSILON
        return compress(torch.matmul(self.mel_basis, power.sqrt().transpose(1, 2)))


def hann_window(config: AudioConfig) -> Tensor:
    """Return a periodic Hann window of ``win_length`` samples, centered in zeros (filter_length,)."""
    around = config.filter_length - config.win_length
    return F.pad(torch.hann_window(config.win_length, periodic=True), (around // 2, around - around // 2))


def reflected(waves: Tensor, lengths: Tensor, *, before: int, n_samples: int) -> Tensor:
    """waves (B, T), lengths (B,) samples -> (B, n_samples), padded by reflection, with ``before`` samples in front."""
    period = (2 * (lengths - 1)).clamp(min=1)[:, None]
    position = (torch.arange(n_samples, device=waves.device) - before) % period
    position = torch.minimum(position, period - position)
    return waves.gather(1, position)


def overlap_add(frames: Tensor, hop_length: int) -> Tensor:
    """frames (B, F, N), ``hop_length`` samples apart -> their sum (B, (F - 1) * hop + N)."""
    n_samples = (frames.size(1) - 1) * hop_length + frames.size(2)
    # Rows of a hop each are faster than F.fold and can be exported (ONNX rounds a negative quotient towards 0).
    n_rows = (frames.size(2) + hop_length - 1) // hop_length
    rows = F.pad(frames, (0, n_rows * hop_length - frames.size(2))).unflatten(2, (n_rows, hop_length))
    shifted = (F.pad(rows[:, :, index], (0, 0, index, n_rows - 1 - index)) for index in range(n_rows))
    return reduce(torch.add, shifted).flatten(1)[:, :n_samples]


@contextmanager
def full_precision_products() -> Iterator[None]:
    """Compute matrix products without TF32; its 10-bit mantissa is too short for logarithms of small sums."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def griffin_lim(mel: Tensor, config: AudioConfig, *, n_iter: int = 60, seed: int = 0) -> Tensor:
    """An utterance's log-mel (n_mels, F) -> wave (F * hop,) float32, with ``n_iter`` iterations of phase search.

    Source: Griffin & Lim, Signal Estimation from Modified STFT (1984); Perraudin et al., A Fast Griffin-Lim Algorithm
    (2013), for the momentum.
    """
    extractor = MelExtractor(config)
    magnitude = torch.from_numpy(linear_magnitude(mel.detach().float().cpu().exp().numpy(), extractor)).T[None]
    phase = np.random.RandomState(seed % 2**32).random_sample(magnitude[0].T.shape).T
    spectrum = torch.polar(magnitude, torch.from_numpy(2 * np.pi * phase[None]).float())  # (1, F, bins)
    windows = extractor.window.expand(1, spectrum.size(1), -1)
    size, hop = config.filter_length, config.hop_length
    weight = overlap_add(windows.square(), hop).clamp(min=1e-11)

    def sound_of(spectrum: Tensor) -> Tensor:
        return overlap_add(torch.fft.irfft(spectrum, n=size) * windows, hop) / weight  # (1, T)

    wave, before = sound_of(spectrum), torch.zeros_like(spectrum)
    for _ in range(n_iter):
        rebuilt = torch.fft.rfft(wave.unfold(1, size, hop) * windows)
        wave = sound_of(rebuilt.sub(before, alpha=_MOMENTUM / (1 + _MOMENTUM)).sgn() * magnitude)
        before = rebuilt
    # Remove the padding, so that frame i starts at sample i * hop in both framings.
    n_samples = mel.shape[1] * hop
    wave = wave[0, extractor.pad_left :][:n_samples]
    return F.pad(wave, (0, n_samples - len(wave)))


def linear_magnitude(mel: np.ndarray, extractor: MelExtractor) -> np.ndarray:
    """Mel magnitudes (n_mels, F) -> magnitudes (1 + filter_length / 2, F) that the mel filters map to them.

    Non-negative least squares by multiplicative updates. Source: Lee & Seung, Algorithms for Non-negative Matrix
    Factorization (2001), with a fixed basis.
    """
    basis, tiny = extractor.mel_basis.numpy(), np.finfo(np.float32).tiny  # (n_mels, bins)
    gram, target = basis.T @ basis, basis.T @ mel
    magnitude = target / np.maximum(basis.T @ basis.sum(axis=1), tiny)[:, None]
    for _ in range(_INVERSION_STEPS):
        magnitude *= target / np.maximum(gram @ magnitude, tiny)
    n_silent = 1 + extractor.config.filter_length // 2 - len(magnitude)
    return np.pad(magnitude, ((0, n_silent), (0, 0)))
