"""Removes a vocoder's constant noise by spectral subtraction."""

from typing import Any

import torch
from torch import Tensor

from common.audio.mel import hann_window
from common.config import AudioConfig

BIAS_FRAMES = 88  # mel frames of zeros to measure the noise's spectrum with, as published


class Denoiser:
    """Subtracts ``strength`` times the magnitudes of a vocoder's noise; doesn't change phases.

    The noise is the vocoder's output for mels of zeros, as in the published inference of WaveGlow (Prenger et al.,
    2018) and HiFi-GAN.
    """

    def __init__(self, noise: Tensor, audio: AudioConfig, *, strength: float) -> None:
        """noise (T,): the vocoder's output for ``BIAS_FRAMES`` mel frames of zeros."""
        self._how: dict[str, Any] = {"n_fft": audio.filter_length, "hop_length": audio.hop_length}
        self._how["window"] = hann_window(audio).to(noise.device)
        self._strength = strength
        self.context = -(-(audio.win_length - 1) // audio.hop_length)  # frames that a sample depends on
        self.bias = self._spectrum(noise)[:, 0].abs()  # (bins,)

    @torch.no_grad()
    def __call__(self, wave: Tensor) -> Tensor:
        """wave (..., T) -> (..., T // hop * hop) float32."""
        spectrum = self._spectrum(wave)
        magnitude = spectrum.abs()
        quieter = (magnitude - self._strength * self.bias[:, None]).clamp(min=0)
        return torch.istft(spectrum * (quieter / magnitude.clamp(min=1e-30)), **self._how)

    def _spectrum(self, wave: Tensor) -> Tensor:
        """wave (..., T) -> (..., bins, T // hop + 1) complex."""
        mode = "reflect" if wave.size(-1) > self._how["n_fft"] // 2 else "constant"  # too short to reflect
        return torch.stft(wave.float(), **self._how, pad_mode=mode, return_complex=True)
