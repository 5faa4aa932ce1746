"""One way to make the networks of any model with weights of a seed, and to save them as a checkpoint."""

from pathlib import Path
from typing import Any

import torch

from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.config import AudioConfig
from common.registry import get_model
from common.text.config import TextConfig
from common.training.objective import Networks


def build(model: str, config: Any, audio: AudioConfig, text: TextConfig | None = None, *, seed: int = 0) -> Networks:
    """All networks of a model, by name, with weights of a seed."""
    torch.manual_seed(seed)
    return get_model(model).model.build_networks(config, audio, text)


def save_networks(
    path: Path, model: str, config: Any, networks: Networks, *, audio: AudioConfig, text: TextConfig | None = None
) -> Path:
    """Write a checkpoint of networks as they are; returns its path."""
    weights = {name: network.state_dict() for name, network in networks.items()}
    save_checkpoint(path, Checkpoint(model, config, audio, text, weights))
    return path
