"""What files of torch.save hold, with the weights of networks that they pickle whole."""

from pathlib import Path
from typing import Any

from torch import Tensor

from common.errors import CheckpointError
from common.torch_file import StoredObject, read_torch_file


def read_pickled(path: Path, *, on_demand: bool = False) -> dict[str, Any]:
    """A checkpoint's dict; with the weights of the network that it pickles, if it does, under ``state_dict``.

    The network is the file's only one, the one called ``model``, or all that the file holds. ``on_demand`` as for
    `common.checkpoints.checkpoint.read_payload`.

    Raises:
        CheckpointError: the file is damaged, or holds anything but networks, tensors and plain types; names it.
    """
    payload = read_torch_file(path, wanted="a checkpoint of torch.save", mapped=on_demand, error=CheckpointError)
    if isinstance(payload, StoredObject):
        return {"state_dict": stored_weights(payload)}
    if not isinstance(payload, dict):
        raise CheckpointError(f"{path}: holds a {type(payload).__name__}, expected a checkpoint's dict")
    networks = {key: value for key, value in payload.items() if isinstance(value, StoredObject)}
    rest = {key: value for key, value in payload.items() if key not in networks}
    if not networks or "state_dict" in rest:
        return rest
    network = networks["model"] if "model" in networks else next(iter(networks.values()))
    return rest | {"state_dict": stored_weights(network)}


def stored_weights(network: StoredObject, prefix: str = "") -> dict[str, Tensor]:
    """A network's parameters and buffers by name, as its ``state_dict()`` would give them."""
    state, weights = network.state, {}
    transient = state.get("_non_persistent_buffers_set") or ()
    for name, value in ((state.get("_parameters") or {}) | (state.get("_buffers") or {})).items():
        if isinstance(value, Tensor) and name not in transient:
            weights[prefix + name] = value
    for name, child in (state.get("_modules") or {}).items():
        if isinstance(child, StoredObject):
            weights |= stored_weights(child, f"{prefix}{name}.")
    return weights
