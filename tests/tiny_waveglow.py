"""A small WaveGlow, real clips to train it on, and the reading of the published numbers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from golden_files import group, read_case, series
from torch import Tensor, nn

from common.config import AudioConfig
from waveglow.arg_parser import TrainingOptions
from waveglow.data_function import WaveGlowBatch
from waveglow.loss_function import WaveGlowObjective
from waveglow.model import ModelConfig, WaveGlow

HOP = 256  # samples, of the published networks
SMALL = ModelConfig(n_mel_channels=6, n_flows=4, n_group=4, n_early_every=2, n_early_size=2, wn_layers=3, wn_channels=8)
SMALL_HOP = 16  # samples
TINY_AUDIO = AudioConfig(n_mels=6, hop_length=16, filter_length=64, win_length=64)
OBJECTIVE = WaveGlowObjective(TrainingOptions(), TINY_AUDIO)
OPTIONS = "-m WaveGlow --flows 4 --early-every 2 --wn-layers 2 --wn-channels 16 --segment-length 1200".split()


def golden_config(values: dict[str, Any]) -> ModelConfig:
    """The ModelConfig of a published network's constructor arguments."""
    own = {key: value for key, value in values.items() if key != "WN_config"}
    return ModelConfig(**own, **{f"wn_{key.removeprefix('n_')}": value for key, value in values["WN_config"].items()})


def golden_network(folder: Path) -> WaveGlow:
    """The small published network, as it is trained."""
    about, tensors = read_case(folder, "waveglow_model")
    network = WaveGlow(golden_config(about["config"]), hop_length=HOP)
    network.load_state_dict(group(tensors, "state_dict"))
    return network.eval()


def golden_noise(tensors: dict[str, Tensor], index: int) -> Tensor:
    """The noise tensors that a published inference used in turn, in the order in which the flows give them."""
    return torch.cat(series(tensors, f"input.noise{index}.")[::-1], dim=1)


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


def segments(count: int, *, seed: int = 0, size: int = 200) -> WaveGlowBatch:
    """A batch of noisy tones."""
    generator = torch.Generator().manual_seed(seed)
    pitch = 0.02 + 0.05 * torch.rand(count, 1, generator=generator)
    wave = 0.5 * torch.sin(pitch * torch.arange(size)) + 0.02 * torch.randn(count, size, generator=generator)
    return WaveGlowBatch(tuple(f"s{seed}.{index}" for index in range(count)), wave, TINY_AUDIO.hop_length)
