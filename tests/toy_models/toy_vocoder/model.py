"""The toy vocoder's network."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from common.config import AudioConfig
from common.synthesis.vocoder import VocoderSettings
from common.text.config import TextConfig
from toy_vocoder.options import InferenceOptions, TrainingOptions


@dataclass(frozen=True)
class ModelConfig:
    """Architecture."""

    n_mels: int
    hop_length: int
    channels: int


class ToyVocoder(nn.Module):
    """mel (B, n_mels, F) -> wave (B, F * hop)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(config.n_mels, config.channels, 3, padding=1),
            nn.Tanh(),
            nn.Conv1d(config.channels, config.hop_length, 1),
        )

    def forward(self, mel: Tensor) -> Tensor:
        return torch.tanh(self.layers(mel)).transpose(1, 2).flatten(1)

    def infer(self, mel: Tensor, lengths: Tensor | None, *, gain: float) -> Tensor:
        """An utterance at a time, as the CPU's vocoder gives it: nothing is padded."""
        return gain * self(mel)

    def prepare_for_inference(self) -> None:
        """Nothing is folded."""


def model_config(
    options: TrainingOptions, audio: AudioConfig, text: TextConfig | None, *, base: ModelConfig | None
) -> ModelConfig:
    """That of the options."""
    return ModelConfig(audio.n_mels, audio.hop_length, options.toy_channels)


def build_networks(
    config: ModelConfig, audio: AudioConfig, text: TextConfig | None, *, inference: bool = False
) -> dict[str, nn.Module]:
    """Its one network."""
    return {"toy_vocoder": ToyVocoder(config)}


def settings(options: InferenceOptions, config: ModelConfig, *, seed: int, where: Path) -> VocoderSettings:
    """What `ToyVocoder.infer` takes."""
    return VocoderSettings(infer={"gain": options.toy_gain})
