"""A small Jasper, noisy batches to train it on, and the reading of the published numbers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from golden_files import group, listed, matching, read_case
from torch import Tensor, nn
from toy import toy_engine

from common.training.engine import Engine
from common.training.objective import Networks
from jasper.augmentation import Augmentation
from jasper.config import BlockConfig, FeatureConfig, ModelConfig
from jasper.data_function import JasperBatch
from jasper.loss_function import JasperObjective
from jasper.model import Jasper

FORMS = [Path(file).stem for file in matching("jasper/model_*.json")]
CASES = [(form, case["index"]) for form in FORMS for case in listed(f"jasper/{form}.json", "cases")]
SMALL = ModelConfig(
    blocks=(
        BlockConfig(8, repeat=1, kernel_size=5, stride=2, residual=False, dropout=0.0),
        BlockConfig(8, repeat=2, kernel_size=5, residual_dense=True, dropout=0.0),
        BlockConfig(12, repeat=2, kernel_size=3, residual_dense=True, dropout=0.0),
        BlockConfig(12, repeat=1, kernel_size=3, residual=False, dilation=2, dropout=0.0),
    ),
    features=FeatureConfig(sample_rate=8000, n_filt=16, n_fft=None),
)
NOTHING = Augmentation(dither=0.0)


def golden_config(values: dict[str, Any], **changes: Any) -> ModelConfig:
    """The ModelConfig of a published network's constructor arguments."""
    encoder = values["encoder"]
    blocks = [{key: one[0] if isinstance(one, list) else one for key, one in b.items()} for b in encoder["blocks"]]
    config = ModelConfig(
        blocks=tuple(BlockConfig(**block) for block in blocks),
        activation=encoder["activation"],
        use_conv_masks=encoder["use_conv_masks"],
        init=encoder["init"],
        decoder_init=values["decoder"]["init"],
        features=FeatureConfig(n_filt=encoder["in_feats"]),
    )
    return replace(config, **changes)


def golden_network(folder: Path, form: str, **changes: Any) -> Jasper:
    """A small published network, in evaluation mode."""
    about, tensors = read_case(folder, form)
    network = Jasper(golden_config(about["config"], **changes))
    network.load_state_dict(group(tensors, "state_dict"))
    return network.eval()


def targets(tokens: Tensor, lengths: Tensor) -> JasperBatch:
    """A batch of transcripts without recordings."""
    names = tuple(str(index) for index in range(len(lengths)))
    nothing = torch.zeros(len(lengths), 1)
    return JasperBatch(names, nothing, torch.ones_like(lengths), tokens, lengths, hop_length=160)


def lively(network: Jasper, *, seed: int = 0) -> Jasper:
    """The network with batch statistics that make a difference."""
    generator = torch.Generator().manual_seed(seed)
    for norm in network.modules():
        if isinstance(norm, nn.BatchNorm2d):
            norm.running_mean.normal_(std=0.3, generator=generator)
            norm.running_var.uniform_(0.5, 2.0, generator=generator)
            nn.init.uniform_(norm.weight, 0.5, 1.5, generator=generator)
            nn.init.normal_(norm.bias, std=0.3, generator=generator)
    return network


def small_network(*, seed: int = 0, **changes: Any) -> Jasper:
    """A small network of a seed's weights, in evaluation mode."""
    torch.manual_seed(seed)
    return lively(Jasper(replace(SMALL, **changes)), seed=seed).eval()


def utterances(lengths: list[int], *, seed: int = 0, augmentation: Augmentation | None = None) -> JasperBatch:
    """Noisy tones of ``lengths`` samples with random transcripts; what they hold depends on their place alone."""
    waves = torch.zeros(len(lengths), max(lengths))
    tokens = torch.zeros(len(lengths), 4, dtype=torch.int64)
    for index, length in enumerate(lengths):
        generator = torch.Generator().manual_seed(1000 * seed + index)
        phase = (0.05 + 0.1 * torch.rand(1, generator=generator)) * torch.arange(length)
        waves[index, :length] = 0.4 * torch.sin(phase) + 0.05 * torch.randn(length, generator=generator)
        tokens[index] = torch.randint(1, 27, (4,), generator=generator)
    generator = torch.Generator().manual_seed(seed)
    draws = torch.rand(len(lengths), augmentation.n_draws, generator=generator) if augmentation else None
    token_lengths = torch.tensor([2 + index % 3 for index in range(len(lengths))])
    return JasperBatch(
        names=tuple(f"u{seed}.{index}" for index in range(len(lengths))),
        waves=waves,
        wave_lengths=torch.tensor(lengths),
        tokens=tokens,
        token_lengths=token_lengths,
        hop_length=SMALL.features.hop_length,
        draws=draws,
    )


def tiny_engine(networks: Networks, *, augmentation: Augmentation = NOTHING, **options: Any) -> Engine:
    """An engine with the published optimizer."""
    settings = {"optimizer": "novograd", "betas": (0.95, 0.0), "eps": 1e-8, "weight_decay": 1e-3}
    return toy_engine(networks, objective=JasperObjective(augmentation), **settings | options)
