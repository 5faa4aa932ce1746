"""Export Jasper, features to log-probabilities, and run exported files in place of the network."""

from typing import Any

import torch
from torch import Tensor, nn

from common.checkpoints.exported import Exports, Part, Runner, Shapes, random_examples
from common.config import AudioConfig
from jasper.config import ModelConfig
from jasper.features import FeatureExtractor
from jasper.model import Jasper, JasperOutput, Transcriber


class ExportableJasper(nn.Module):
    """The network, with tensors in place of `JasperOutput`."""

    def __init__(self, network: Jasper) -> None:
        super().__init__()
        self.encoder, self.decoder = network.encoder, network.decoder

    def forward(self, features: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """features (B, C, F), lengths (B,) frames -> log-probabilities (B, F', n_classes), lengths (B,)."""
        x, lengths = self.encoder(features, lengths)
        return self.decoder(x), lengths


def exports(network: Jasper, config: ModelConfig, audio: AudioConfig) -> Exports:
    """Export Jasper as one part."""
    inputs: Shapes = {"features": ("batch", config.features.n_filt, "frames"), "lengths": ("batch",)}
    outputs: Shapes = {"log_probs": ("batch", "output_frames", config.n_classes), "output_lengths": ("batch",)}
    module, examples = ExportableJasper(network).eval(), random_examples(inputs, {})
    # Two utterances of different lengths: a single one would be traced without a mask.
    part = Part("", module, inputs, outputs, examples, scriptable=True, example_batch=2)
    return Exports((part,), {"labels": list(config.labels)})


class ExportedNetwork(Transcriber):
    """An exported Jasper; PyTorch computes the features."""

    def __init__(self, run: Runner, config: ModelConfig, description: dict[str, Any], device: torch.device) -> None:
        self._run, self.config = run, config
        self.features = FeatureExtractor(config.features).to(device)

    def infer(self, features: Tensor, lengths: Tensor) -> JasperOutput:
        out = self._run({"features": features, "lengths": lengths})
        return JasperOutput(out["log_probs"], out["output_lengths"])
