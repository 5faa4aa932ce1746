"""Export WaveGlow, and run an exported file in place of the network."""

from typing import Any, cast

import torch
from torch import Tensor, nn

from common.checkpoints.exported import WAVE, Exports, Part, Shapes, random_examples
from common.config import AudioConfig
from common.nn.layers import SeededNoise, mask_from_lengths
from common.synthesis.networks import ExportedVocoder
from waveglow.config import SIGMA_INFER
from waveglow.model import Invertible1x1Conv, ModelConfig, WaveGlow, grouped


class _InverseFlow(nn.Module):
    """One flow of `WaveGlow.inverse`."""

    inverse: Tensor  # (C, C): of the 1x1 convolution

    def __init__(self, network: WaveGlow, flow: int) -> None:
        super().__init__()
        convinv = cast(Invertible1x1Conv, network.convinv[flow])
        self.n_early = network.config.n_group - network.config.n_channels(flow)
        self.wn = network.WN[flow]
        self.register_buffer("inverse", convinv.inverted())

    def forward(self, z: Tensor, cond: Tensor, padding: Tensor) -> Tensor:
        """z (B, n_group, G) -> (B, n_group, G) before the flow; the other inputs are those of `WN`."""
        first, second = z[:, self.n_early :].chunk(2, dim=1)
        shift, log_scale = self.wn(first, cond, padding)
        active = torch.cat([first, (second - shift) * torch.exp(-log_scale)], dim=1)
        return torch.cat([z[:, : self.n_early], torch.matmul(self.inverse, active)], dim=1)


class ExportableWaveGlow(nn.Module):
    """`WaveGlow.inverse` without in-place operations."""

    def __init__(self, network: WaveGlow) -> None:
        super().__init__()
        self.hop_length, self.n_group = network.hop_length, network.config.n_group
        self.upsample = network.upsample
        self.flows = nn.ModuleList(_InverseFlow(network, flow) for flow in reversed(range(network.config.n_flows)))

    def forward(self, mel: Tensor, noise: Tensor, lengths: Tensor) -> Tensor:
        """mel (B, n_mels, F), noise (B, n_group, F * hop / n_group), lengths (B,) frames -> wave (B, F * hop)."""
        padding = ~mask_from_lengths(lengths * (self.hop_length // self.n_group), noise.size(2)).unsqueeze(1)
        cond = grouped(self.upsample(mel), self.n_group, mel.size(2) * self.hop_length)
        z = noise
        for flow in self.flows:
            z = flow(z, cond, padding)
        return z.masked_fill(padding, 0.0).transpose(1, 2).flatten(1)


def exports(network: WaveGlow, config: ModelConfig, audio: AudioConfig) -> Exports:
    """Export WaveGlow as one part, with noise as an input."""
    per_frame = network.hop_length // config.n_group
    inputs: Shapes = {
        "mel": ("batch", config.n_mel_channels, "frames"),
        "noise": ("batch", config.n_group, "positions"),
        "lengths": ("batch",),
    }
    made = {"mel": lambda values: 2 * values - 5, "noise": lambda values: SIGMA_INFER * values}
    examples = random_examples(inputs, made, positions=lambda length: length * per_frame)
    part = Part("", ExportableWaveGlow(network).eval(), inputs, WAVE, examples, scriptable=True)

    def noise(n_frames: int, seed: int) -> Tensor:
        drawn = SeededNoise(config.n_group)(seed, n_frames * per_frame, device=torch.device("cpu"))
        return SIGMA_INFER * drawn

    return Exports((part,), {"sigma": SIGMA_INFER, "positions_per_frame": per_frame}, noise)


class ExportedNetwork(ExportedVocoder):
    """An exported WaveGlow, which makes the same sound as the network from the same noise."""

    def __init__(self, *description: Any) -> None:
        super().__init__(*description)
        self.hop_length, self._noise = self.audio.hop_length, SeededNoise(self.config.n_group)

    infer, settings = WaveGlow.infer, WaveGlow.settings  # `infer` draws noise for `inverse`

    def inverse(self, mel: Tensor, z: Tensor, lengths: Tensor | None) -> Tensor:
        return self.run(mel, lengths, noise=z)
