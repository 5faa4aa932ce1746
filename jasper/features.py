"""Jasper's log-mel features; an utterance's features don't depend on its batch."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.audio.mel import full_precision_products, mel_filters, reflected
from common.nn.layers import mask_from_lengths
from jasper.config import FeatureConfig

FLOOR = 1e-20  # added to the power before its logarithm
STD_FLOOR = 1e-5  # added to the deviation that features are divided by


@dataclass(frozen=True)
class JasperFeatures:
    """Input of the network; float32, 0 past an utterance's end."""

    features: Tensor  # (B, C, F)
    lengths: Tensor  # (B,) int64 frames


class FeatureExtractor(nn.Module):
    """wave -> normalized log-mel-spectrogram as ``FeatureConfig`` describes it (arXiv:1904.03288, section 4).

    Pre-emphasis, frames around every ``hop_length``-th sample of the signal, reflected at the utterance's ends, a
    symmetric window, power, Slaney mel filters of equal area, ln(x + 1e-20), zero mean and unit deviation over frames.
    """

    mel_basis: Tensor  # (n_filt, bins)
    window: Tensor  # (win_length,)

    def __init__(self, config: FeatureConfig) -> None:
        super().__init__()
        self.config = config
        n_fft, win_length = config.fft_length, config.win_length
        # Frames have n_fft samples, but those outside the window don't change the power.
        self._pad_left = n_fft // 2 - (n_fft - win_length) // 2  # samples
        basis = mel_filters(config.sample_rate, n_fft, config.n_filt, low=config.lowfreq, high=config.highfreq)
        window = torch.ones(win_length)
        if config.window != "none":
            window = getattr(torch, f"{config.window}_window")(win_length, periodic=False)
        self.register_buffer("mel_basis", basis, persistent=False)
        self.register_buffer("window", window, persistent=False)

    @torch.no_grad()
    def forward(self, waves: Tensor, lengths: Tensor) -> JasperFeatures:
        """waves (B, T) float32 in [-1, 1], lengths (B,) samples -> `JasperFeatures`, F a multiple of ``pad_align``."""
        config = self.config
        with torch.autocast(waves.device.type, enabled=False), full_precision_products():
            spectrum = self._spectrum(self._emphasized(waves.float()), lengths)
        n_frames = (lengths + config.hop_length - 1) // config.hop_length
        mask = mask_from_lengths(n_frames, spectrum.size(2)).unsqueeze(1)
        features = self._normalized(spectrum, n_frames, mask)
        if config.pad_align > 0:
            features = F.pad(features, (0, -features.size(2) % config.pad_align))
        return JasperFeatures(features, n_frames)

    def _emphasized(self, waves: Tensor) -> Tensor:
        """waves (B, T) -> (B, T), minus a share of the previous sample."""
        if not self.config.preemph:
            return waves
        return torch.cat([waves[:, :1], waves[:, 1:] - self.config.preemph * waves[:, :-1]], dim=1)

    def _spectrum(self, waves: Tensor, lengths: Tensor) -> Tensor:
        """waves (B, T) -> (B, n_filt, 1 + T // hop)."""
        config = self.config
        n_samples = waves.size(1) + config.win_length
        padded = reflected(waves, lengths, before=self._pad_left, n_samples=n_samples)
        frames = padded.unfold(1, config.win_length, config.hop_length) * self.window
        spectrum = torch.fft.rfft(frames, n=config.fft_length)  # (B, F, bins)
        power = spectrum.real.square() + spectrum.imag.square()
        mel = torch.matmul(self.mel_basis, power.transpose(1, 2))
        return torch.log(mel + FLOOR) if config.log else mel

    def _normalized(self, features: Tensor, lengths: Tensor, mask: Tensor) -> Tensor:
        """features (B, C, F), mask (B, 1, F) True within an utterance -> (B, C, F), 0 elsewhere."""
        features = features.masked_fill(~mask, 0.0)
        if self.config.normalize == "none":
            return features
        axes = (2,) if self.config.normalize == "per_feature" else (1, 2)
        count = lengths[:, None, None] * (1 if axes == (2,) else features.size(1))
        centered = (features - features.sum(axes, keepdim=True) / count).masked_fill(~mask, 0.0)
        variance = centered.square().sum(axes, keepdim=True) / (count - 1).clamp(min=1)
        return centered / (variance.sqrt() + STD_FLOOR)
