"""A small WaveGlow, real clips to train it on, and the reading of the published numbers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from waveglow.model import ModelConfig, WaveGlow

HOP = 256  # samples, of the published networks
SMALL = ModelConfig(n_mel_channels=6, n_flows=4, n_group=4, n_early_every=2, n_early_size=2, wn_layers=3, wn_channels=8)
SMALL_HOP = 16  # samples
OPTIONS = "--flows 4 --early-every 2 --wn-layers 3 --wn-channels 16 --segment-length 2000".split()


def golden_config(values: dict[str, Any]) -> ModelConfig:
    """The ModelConfig of a published network's constructor arguments."""
    own = {key: value for key, value in values.items() if key != "WN_config"}
    return ModelConfig(**own, **{f"wn_{key.removeprefix('n_')}": value for key, value in values["WN_config"].items()})


def group(tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    """The tensors of a group, without its name before theirs."""
    prefix = name + "."
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}


def golden_network(folder: Path) -> WaveGlow:
    """The small published network, as it is trained."""
    config = json.loads((folder / "waveglow_model.json").read_text())["config"]
    network = WaveGlow(golden_config(config), hop_length=HOP)
    network.load_state_dict(group(load_file(folder / "waveglow_model.safetensors"), "state_dict"))
    return network.eval()


def lively(network: WaveGlow, *, seed: int = 0) -> WaveGlow:
    """The network with weights that make every part of it matter; new ones end in zeros."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in network.named_parameters():
        if ".end." in name:
            nn.init.normal_(parameter, std=0.02, generator=generator)
        elif "upsample.weight" in name:
            nn.init.normal_(parameter, std=0.1, generator=generator)
    return network


def small_network(*, seed: int = 0, **changes: Any) -> WaveGlow:
    """A small network of a seed's weights, for hops of ``SMALL_HOP`` samples."""
    torch.manual_seed(seed)
    return lively(WaveGlow(replace(SMALL, **changes), hop_length=SMALL_HOP), seed=seed).eval()
