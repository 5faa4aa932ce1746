"""Export Tacotron 2 as three functions of tensors, and run exported files in place of the network.

The loop over the decoder's steps isn't in the files.
"""

import functools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from common.checkpoints.exported import Exports, Part, Runner, Shape, Shapes, random_examples
from common.config import AudioConfig
from common.nn.layers import mask_from_lengths
from tacotron2.config import ModelConfig
from tacotron2.decoder import PRENET_DROPOUT, PRENET_LAYERS, DecoderStep
from tacotron2.layers import Postnet
from tacotron2.model import Inference, RunSteps, Tacotron2, run_steps, state_widths

_HISTORY = ("attention_weights", "attention_weights_sum")


class ExportableEncoder(nn.Module):
    """The encoder and the attention's memory layer."""

    def __init__(self, network: Tacotron2) -> None:
        super().__init__()
        self.embedding, self.encoder = network.embedding, network.encoder
        self.memory_layer = network.decoder.attention_layer.memory_layer
        self.mask_convolutions = network.config.mask_convolutions

    def forward(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """tokens (B, L), lengths (B,) -> memory (B, L, memory_dim), processed memory (B, attention_dim, L)."""
        mask: Tensor | None = None
        if self.mask_convolutions:
            mask = mask_from_lengths(lengths, tokens.size(1))
        # Not packed, because PyTorch's ONNX exporter warns about packed sequences.
        memory = self.encoder.read_padded(self.encoder.convolve(self.embedding(tokens), mask), lengths)
        return memory, self.memory_layer(memory).transpose(1, 2).contiguous()


class ExportablePostnet(nn.Module):
    """The postnet, with zeros after an utterance's end."""

    def __init__(self, postnet: Postnet) -> None:
        super().__init__()
        self.postnet = postnet

    def forward(self, mel: Tensor, lengths: Tensor) -> Tensor:
        """mel (B, n_mels, F), lengths (B,) -> (B, n_mels, F) with the residual."""
        return self.postnet(mel, lengths) * mask_from_lengths(lengths, mel.size(2)).unsqueeze(1)


def exports(network: Tacotron2, config: ModelConfig, audio: AudioConfig) -> Exports:
    """Export the encoder, one decoder step, and the postnet."""
    memory: Shapes = {
        "memory": ("batch", "tokens", config.encoder_embedding_dim),
        "processed_memory": ("batch", config.attention_dim, "tokens"),
    }
    states: Shapes = {name: ("batch", width) for name, width in state_widths(config).items()}
    states |= dict.fromkeys(_HISTORY, ("batch", "tokens"))
    lengths: Shapes = {"lengths": ("batch",)}
    masks: Shapes = {"prenet_masks": (PRENET_LAYERS, "masks", config.prenet_dim)}
    # The outputs next_... are the next step's inputs.
    decoded: Shapes = {"gate": ("batch",), **{f"next_{name}": shape for name, shape in states.items()}}
    mel: Shape = ("batch", config.n_mel_channels, "frames")
    made = {
        "tokens": lambda values: (torch.special.ndtr(values) * config.n_symbols).long().clamp(max=config.n_symbols - 1),
        "prenet_masks": lambda values: (values > 0) / (1 - PRENET_DROPOUT),
        "mel": lambda values: 2 * values - 5,
        **dict.fromkeys(_HISTORY, lambda values: values.softmax(1)),
    }

    def part(name: str, module: nn.Module, inputs: Shapes, outputs: Shapes) -> Part:
        examples = random_examples(inputs, made, masks=lambda length: 1)
        return Part(name, module.eval(), inputs, outputs, examples, scriptable=True, example_batch=2)

    parts = (
        part("encoder", ExportableEncoder(network), {"tokens": ("batch", "tokens"), **lengths}, memory),
        part("decoder", DecoderStep(network.decoder, torch.float32), {**masks, **states, **memory, **lengths}, decoded),
        part("postnet", ExportablePostnet(network.postnet), {"mel": mel, **lengths}, {"refined_mel": mel}),
    )
    return Exports(parts, {"prenet_dropout": PRENET_DROPOUT})


class ExportedNetwork(Inference):
    """Exported parts of Tacotron 2 in place of the network."""

    def __init__(
        self, parts: Mapping[str, Runner], config: ModelConfig, description: dict[str, Any], device: torch.device
    ) -> None:
        self._parts, self.config = parts, config
        self.postnet = lambda mel, lengths: parts["postnet"]({"mel": mel, "lengths": lengths})["refined_mel"]

    def begin(self, tokens: Tensor, lengths: Tensor) -> tuple[RunSteps, tuple[Tensor, Tensor, Tensor]]:
        encoded = self._parts["encoder"]({"tokens": tokens, "lengths": lengths})

        states = (*state_widths(self.config), *_HISTORY)

        def step(*given: Tensor) -> tuple[Tensor, ...]:
            names = ("prenet_masks", *states, "memory", "processed_memory", "lengths")
            out = self._parts["decoder"](dict(zip(names, given, strict=True)))
            return (out["gate"], *(out[f"next_{name}"] for name in states))

        return functools.partial(run_steps, step), (encoded["memory"], encoded["processed_memory"], lengths)
