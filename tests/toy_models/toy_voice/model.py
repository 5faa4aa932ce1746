"""The toy voice's network."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from common.config import AudioConfig
from common.nn.layers import mask_from_lengths
from common.synthesis.utterances import Controls, MelOutput
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from toy_voice.options import InferenceOptions, TrainingOptions


@dataclass(frozen=True)
class ModelConfig:
    """Architecture."""

    n_mels: int
    n_symbols: int
    frames: int


class ToyVoice(nn.Module):
    """tokens (B, L) -> mel (B, n_mels, L * frames)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.n_symbols, config.n_mels)
        self.frames = config.frames

    def forward(self, tokens: Tensor) -> Tensor:
        return self.embedding(tokens).transpose(1, 2).repeat_interleave(self.frames, dim=2)

    def infer(self, tokens: Tensor, lengths: Tensor, controls: Controls | None = None) -> MelOutput:
        """Every second frame at a pace of 2, and so on."""
        step = 1 if controls is None else round(controls.pace)
        mel = self(tokens)[:, :, ::step]
        mel_lengths = -(-lengths * self.frames // step)
        return MelOutput(mel * mask_from_lengths(mel_lengths, mel.size(2)).unsqueeze(1), mel_lengths)

    def prepare_for_inference(self) -> None:
        """Nothing is folded."""


def model_config(
    options: TrainingOptions, audio: AudioConfig, text: TextConfig, *, base: ModelConfig | None
) -> ModelConfig:
    """That of the options."""
    return ModelConfig(audio.n_mels, TextFrontEnd(text).n_symbols, options.frames)


def build_networks(
    config: ModelConfig, audio: AudioConfig, text: TextConfig, *, inference: bool = False
) -> dict[str, nn.Module]:
    """Its one network."""
    return {"toy_voice": ToyVoice(config)}


def controls(options: InferenceOptions, network: ToyVoice, config: ModelConfig, *, where: Path) -> Controls:
    """How it speaks."""
    return Controls(pace=options.toy_pace)
