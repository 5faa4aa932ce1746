"""Export the harmonic vocoder, and run exported files in place of the network."""

import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.checkpoints.exported import WAVE, Exports, Part, Quantization, Shapes, random_examples
from common.config import AudioConfig
from common.nn.layers import SeededNoise
from common.synthesis.networks import ExportedVocoder, VocoderSettings
from harmonic.arg_parser import InferenceOptions
from harmonic.config import MEL_CORRECTIONS, ModelConfig
from harmonic.model import Fourier, HarmonicVocoder, draw_noise


class _Complex:
    """Complex numbers as two real tensors, with the operations that the network needs."""

    def __init__(self, real: Tensor, imag: Tensor) -> None:
        self.real, self.imag = real, imag

    def __getitem__(self, index: Any) -> "_Complex":
        return _Complex(self.real[index], self.imag[index])

    def __mul__(self, other: "_Complex | Tensor") -> "_Complex":
        if isinstance(other, Tensor):
            return _Complex(self.real * other, self.imag * other)
        real = self.real * other.real - self.imag * other.imag
        return _Complex(real, self.real * other.imag + self.imag * other.real)

    def __add__(self, other: "_Complex") -> "_Complex":
        return _Complex(self.real + other.real, self.imag + other.imag)

    def repeat(self, *counts: int) -> "_Complex":
        """Repeat like `Tensor.repeat`."""
        return _Complex(self.real.repeat(*counts), self.imag.repeat(*counts))


class _RealFourier(Fourier):
    """Computes `Fourier` with matrix products (Cooley and Tukey, 1965), in a third of the time of ONNX's operators.
    For samples ``n_fast * a + b`` and bins ``c + n_slow * d``, it sums over a, then over b.
    """

    first: Tensor  # (n_fast, n_slow, 2 * n_slow): over a, for each b
    second: Tensor  # (2 * n_fast, 2 * n_d): over b
    scale: Tensor  # (bins,): for the inverse, which is the transpose

    def __init__(self, audio: AudioConfig) -> None:
        super().__init__(audio)
        self.n_bins = self.size // 2 + 1
        self.n_slow = max(n for n in range(1, math.isqrt(self.size) + 1) if self.size % n == 0)
        self.n_fast = self.size // self.n_slow
        self.n_d = -(-self.n_bins // self.n_slow)
        a, b, d = (torch.arange(n, dtype=torch.float64) for n in (self.n_slow, self.n_fast, self.n_d))
        turns = torch.outer(a, a) / self.n_slow + (b[:, None] * a / self.size).unsqueeze(1)  # (b, a, c)
        first, second = (torch.exp(-2j * math.pi * one) for one in (turns, torch.outer(b, d) / self.n_fast))
        second = torch.view_as_real(torch.stack([second, 1j * second], dim=1)).transpose(2, 3)
        scale = torch.fft.irfft(torch.eye(self.n_bins), n=self.size)[:, 0]
        self.register_buffer("first", torch.view_as_real(first).flatten(2).float())
        self.register_buffer("second", second.flatten(2).flatten(0, 1).float())
        self.register_buffer("scale", scale)

    def forward(self, wave: Tensor, window: Tensor) -> _Complex:
        """wave (B, T) -> real and imaginary parts (B, F, bins) of frames times ``window``."""
        n_rows = -(-self.size // self.hop)  # rows of one hop per frame
        n_frames = (wave.size(1) - self.size) // self.hop + 1
        rows = F.pad(wave, (0, n_rows * self.hop - self.size)).unflatten(1, (-1, self.hop))
        frames = torch.cat([rows[:, index : index + n_frames] for index in range(n_rows)], dim=2)
        frames = frames[:, :, : self.size] * window
        x = frames.unflatten(2, (self.n_slow, self.n_fast)).permute(3, 0, 1, 2).flatten(1, 2)
        x = torch.matmul(x, self.first).unflatten(2, (self.n_slow, 2)).permute(1, 2, 0, 3).flatten(2)
        x = torch.matmul(x, self.second).transpose(1, 2).reshape(wave.size(0), n_frames, 2, self.n_d * self.n_slow)
        return _Complex(x[:, :, 0, : self.n_bins], x[:, :, 1, : self.n_bins])

    def inverse(self, spectrum: _Complex) -> Tensor:
        """spectrum (B, F, bins) -> frames (B, F, filter_length)."""
        n_batch, n_frames, _ = spectrum.real.shape
        x = torch.stack([spectrum.real, spectrum.imag], dim=2) * self.scale
        x = F.pad(x, (0, self.n_d * self.n_slow - self.n_bins))
        x = x.reshape(n_batch * n_frames, 2 * self.n_d, self.n_slow).transpose(1, 2)
        x = torch.matmul(x, self.second.t()).unflatten(2, (self.n_fast, 2)).permute(2, 0, 1, 3).flatten(2)
        x = torch.matmul(x, self.first.transpose(1, 2)).permute(1, 2, 0)
        return x.reshape(n_batch, n_frames, self.size)

    def polar(self, magnitude: Tensor, phase: Tensor) -> _Complex:
        """Return real and imaginary parts from magnitudes and phases."""
        return _Complex(magnitude * phase.cos(), magnitude * phase.sin())


class ExportableHarmonic(nn.Module):
    """The vocoder with noise and lengths as inputs."""

    def __init__(self, network: HarmonicVocoder) -> None:
        super().__init__()
        self.network = network

    def forward(self, mel: Tensor, noise: Tensor, lengths: Tensor) -> Tensor:
        """mel (B, n_mels, F), noise from `draw_noise`, lengths (B,) frames -> wave (B, F * hop)."""
        wave = self.network(mel, self.network.track(mel, lengths), noise, lengths, corrections=MEL_CORRECTIONS)
        return self.network.cut(wave, mel.size(2), lengths)


def exports(network: HarmonicVocoder, config: ModelConfig, audio: AudioConfig) -> Exports:
    """Export the vocoder as one part, with noise as an input."""
    inputs: Shapes = {"mel": ("batch", config.n_mel_channels, "frames"), "noise": ("batch", "noise_samples")}
    inputs["lengths"] = ("batch",)

    def n_samples(n_frames: int) -> int:
        return (n_frames - 1) * audio.hop_length + audio.filter_length

    examples = random_examples(inputs, {"mel": lambda values: values - 5}, noise_samples=n_samples)

    def onnx_form(quantized: bool) -> ExportableHarmonic:
        traced = deepcopy(network)
        traced.fourier = _RealFourier(audio)
        return ExportableHarmonic(traced).eval()

    quantization = Quantization(False, lambda _: [examples(1, 200, torch.Generator().manual_seed(1))], "/blocks.")
    module = ExportableHarmonic(network).eval()
    part = Part("", module, inputs, WAVE, examples, onnx_form=onnx_form, quantization=quantization)

    def noise(n_frames: int, seed: int) -> Tensor:
        return draw_noise(SeededNoise(audio.hop_length), seed, torch.zeros(1, 1, n_frames), audio)

    return Exports((part,), {}, noise)


class ExportedNetwork(ExportedVocoder):
    """An exported harmonic vocoder, which gets the same noise as the network."""

    def __init__(self, *description: Any) -> None:
        super().__init__(*description)
        self._noise = SeededNoise(self.audio.hop_length)

    def settings(self, options: InferenceOptions, *, seed: int, where: Path) -> VocoderSettings:
        return VocoderSettings(infer={"seed": seed})  # whole utterances, because the file computes pitch and phase

    def infer(self, mel: Tensor, lengths: Tensor | None = None, *, seed: int = 1234) -> Tensor:
        return self.run(mel, lengths, noise=draw_noise(self._noise, seed, mel, self.audio))
