"""Removes a vocoder's constant noise by spectral subtraction."""

import torch
from torch import Tensor

from common.audio.mel import hann_window, inverse_stft, overlap_add, reflected
from common.config import AudioConfig

BIAS_FRAMES = 88  # mel frames of zeros whose sound gives the noise's spectrum, as published


class Denoiser:
    """Subtracts ``strength`` times the magnitudes of a vocoder's noise, and keeps phases.

    The noise is the vocoder's output for mels of zeros, as in the published inference of WaveGlow (Prenger et al.,
    2018) and HiFi-GAN. Each utterance of a batch is reflected at its ends.
    """

    def __init__(self, noise: Tensor, audio: AudioConfig, *, strength: float) -> None:
        """noise (T,): the vocoder's sound of ``BIAS_FRAMES`` mel frames of zeros."""
        self._size = audio.filter_length  # samples
        self._hop = audio.hop_length  # samples
        self._window = hann_window(audio).to(noise.device)  # (filter_length,)
        self._strength = strength
        self.context = -(-(audio.win_length - 1) // audio.hop_length)  # frames that a sample depends on
        length = torch.tensor([len(noise)], device=noise.device)
        self.bias = self._spectrum(noise.float()[None], length)[0, 0].abs()  # (bins,)

    @torch.no_grad()
    def __call__(self, waves: Tensor, lengths: Tensor | None = None) -> Tensor:
        """waves (B, T), lengths (B,) samples -> (B, T // hop * hop) float32, zero past an utterance's complete hops."""
        if lengths is None:
            lengths = torch.full((len(waves),), waves.size(1), device=waves.device)
        spectrum = self._spectrum(waves.float(), lengths)
        magnitude = spectrum.abs()
        quieter = (magnitude - self._strength * self.bias).clamp(min=0)
        spectrum = torch.where(magnitude > 0, spectrum * (quieter / magnitude.clamp(min=1e-30)), 0)
        return self._sound(spectrum, lengths // self._hop + 1)

    def _spectrum(self, waves: Tensor, lengths: Tensor) -> Tensor:
        """waves (B, T) -> (B, T // hop + 1, bins) complex."""
        n_samples = waves.size(1) // self._hop * self._hop + self._size
        padded = reflected(waves, lengths, before=self._size // 2, n_samples=n_samples)
        return torch.fft.rfft(padded.unfold(1, self._size, self._hop) * self._window)

    def _sound(self, spectrum: Tensor, n_frames: Tensor) -> Tensor:
        """spectrum (B, N, bins), of which each utterance has ``n_frames`` (B,) -> (B, (N - 1) * hop)."""
        valid = torch.arange(spectrum.size(1), device=spectrum.device) < n_frames[:, None]
        n_samples = (spectrum.size(1) - 1) * self._hop
        windows = self._window * valid[:, :, None]
        weight = overlap_add(windows.square(), self._hop).clamp(min=1e-11)
        sound = inverse_stft(spectrum, windows, self._hop, weight)
        sound = sound[:, self._size // 2 : self._size // 2 + n_samples]
        past_end = torch.arange(n_samples, device=sound.device) >= (n_frames - 1)[:, None] * self._hop
        return sound.masked_fill(past_end, 0.0)
