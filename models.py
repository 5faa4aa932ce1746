"""From a model's name or checkpoint to its networks."""

from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.loading import Given
from common.config import AudioConfig, TextConfig, from_plain
from common.errors import CheckpointError
from common.registry import import_package

_LONGEST_LIST = 6  # differing keys named in an error


def get_package(name: str) -> ModuleType:
    """The package of a model, with ``.model``, ``.arg_parser``, ``.data_function`` and ``.loss_function``."""
    return import_package(name)


def build_networks(
    name: str, config: Any, audio: AudioConfig, text: TextConfig | None, *, inference: bool = False
) -> dict[str, nn.Module]:
    """A model's networks with new weights, or with ``inference`` those alone that inference needs."""
    return import_package(name).model.build_networks(config, audio, text, inference=inference)


def load_networks(
    checkpoint: Checkpoint, *, ema: bool = False, device: torch.device, where: str = "checkpoint"
) -> tuple[dict[str, nn.Module], Any]:
    """The networks that infer, of a checkpoint, on ``device`` in evaluation mode, and its ModelConfig.

    Those that only training needs (discriminators) are neither built nor loaded. ``ema`` takes the averaged weights;
    ``where`` names the checkpoint in errors.

    Raises:
        CheckpointError: averaged weights are asked for and absent, or the weights do not fit the configuration.
    """
    kind = import_package(checkpoint.model).model.ModelConfig
    config = from_plain(kind, checkpoint.config, where=where)
    networks = build_networks(checkpoint.model, config, checkpoint.audio, checkpoint.text, inference=True)
    weights = checkpoint.networks
    if ema:
        if checkpoint.ema is None:
            raise CheckpointError(f"{where}: holds no averaged weights; leave out --ema")
        weights = {**weights, **checkpoint.ema}
    load_weights(networks, weights, where=where)
    return {key: network.to(device).eval() for key, network in networks.items()}, config


def load_for_inference(given: Given, *, device: torch.device) -> tuple[Any, Any]:
    """The first network of a checkpoint, ready to infer, and its ModelConfig."""
    networks, config = load_networks(given.checkpoint, ema=given.ema, device=device, where=str(given.path))
    network = next(iter(networks.values()))
    network.prepare_for_inference()
    return network, config


def load_weights(networks: dict[str, nn.Module], weights: dict[str, dict[str, Tensor]], *, where: str) -> None:
    """Load each network's state dict; every key and shape must be as expected.

    Raises:
        CheckpointError: lists what is missing, unexpected or of another shape.
    """
    lines = [f"no network {name}" for name in networks if name not in weights]
    for name, network in networks.items():
        if name in weights:
            lines += _differences(network.state_dict(), weights[name])
    if lines:
        shown = "; ".join(lines[:_LONGEST_LIST])
        rest = f"; and {len(lines) - _LONGEST_LIST} more" if len(lines) > _LONGEST_LIST else ""
        raise CheckpointError(f"{where}: its weights do not fit the model: {shown}{rest}")
    for name, network in networks.items():
        network.load_state_dict(weights[name])


def _differences(own: dict[str, Tensor], given: dict[str, Tensor]) -> list[str]:
    lines = [f"missing {key}" for key in own if key not in given]
    lines += [f"unexpected {key}" for key in given if key not in own]
    lines += [
        f"{key} is {tuple(given[key].shape)}, expected {tuple(own[key].shape)}"
        for key in own
        if key in given and given[key].shape != own[key].shape
    ]
    return lines
