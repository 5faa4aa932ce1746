"""Jasper for exported files: features to log-probabilities."""

import torch
from torch import Tensor, nn

from common.checkpoints import Exports, Part
from common.config import AudioConfig
from jasper.config import ModelConfig
from jasper.model import Jasper


class ExportableJasper(nn.Module):
    """The network with tensors in place of `JasperOutput`."""

    def __init__(self, network: Jasper) -> None:
        super().__init__()
        self.network = network

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """features (B, C, F), lengths (B,) frames -> log-probabilities (B, F', n_classes), lengths (B,)."""
        out = self.network(features, lengths)
        return out.log_probs, out.lengths


def exports(network: Jasper, config: ModelConfig, audio: AudioConfig) -> Exports:
    """Jasper as one part."""
    n_features = config.features.n_features

    def examples(n_batch: int, length: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        lengths = torch.tensor([length - 4 * row for row in range(n_batch)])
        features = torch.randn(n_batch, n_features, length, generator=generator)
        return features * (torch.arange(length) < lengths[:, None])[:, None], lengths

    part = Part(
        "",
        ExportableJasper(network).eval(),
        {"features": ("batch", n_features, "frames"), "lengths": ("batch",)},
        {"log_probs": ("batch", "output_frames", config.n_classes), "output_lengths": ("batch",)},
        examples,
        example_batch=2,  # of unlike lengths: alone, an utterance needs no mask, and the trace would have none
    )
    return Exports((part,), {"labels": list(config.labels)})
