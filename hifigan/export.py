"""HiFi-GAN's generator for exported files, and such a file in place of the network."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from common.checkpoints import Exports, OnnxForm, Part, Quantization, Runner, Signature, vocoder_signature
from common.config import AudioConfig
from hifigan.config import ModelConfig
from hifigan.model import Generator
from hifigan.onnx_graph import of_batches


class ExportableGenerator(nn.Module):
    """The generator, whose ``forward`` infers."""

    def __init__(self, network: Generator) -> None:
        super().__init__()
        self.network = network

    def forward(self, mel: Tensor, lengths: Tensor | None = None) -> Tensor:
        """mel (B, n_mels, F), lengths (B,) frames -> wave (B, F * hop), each utterance as if it were alone."""
        return self.network.infer(mel, lengths)


def signatures(config: ModelConfig, audio: AudioConfig) -> dict[str, Signature]:
    """Inputs and outputs of HiFi-GAN's only exported part, by its empty name."""
    return {"": vocoder_signature(config.n_mel_channels)}


def exports(network: Generator, config: ModelConfig, audio: AudioConfig) -> Exports:
    """HiFi-GAN as one part."""
    module = ExportableGenerator(network).eval()

    def examples(n_batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        mel = torch.randn(n_batch, config.n_mel_channels, length, generator=generator) * 2 - 5
        return mel, torch.tensor([length - 3 * row for row in range(n_batch)])

    def onnx_form(quantized: bool) -> OnnxForm:
        complete = partial(of_batches, n_mels=config.n_mel_channels, hop_length=audio.hop_length)
        return OnnxForm(module, ("mel",), complete)

    part = Part(
        "",
        module,
        signatures(config, audio)[""],
        examples,
        scriptable=True,
        onnx_form=onnx_form,
        quantization=Quantization(True, lambda mels: [(mel[None], torch.tensor([mel.size(1)])) for mel in mels]),
    )
    return Exports((part,))


class ExportedGenerator:
    """An exported HiFi-GAN, which makes the sound that the network does."""

    def __init__(self, run: Runner, config: ModelConfig, description: dict[str, Any], device: torch.device) -> None:
        self._run = run

    def infer(self, mel: Tensor, lengths: Tensor | None = None) -> Tensor:
        """mel (B, n_mels, F), lengths (B,) frames -> wave (B, F * hop)."""
        if lengths is None:
            lengths = torch.full((len(mel),), mel.size(2), device=mel.device)
        return self._run({"mel": mel.float(), "lengths": lengths})["wave"]
