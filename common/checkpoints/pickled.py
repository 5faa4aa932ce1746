"""What files of torch.save hold, with the weights of networks that they pickle whole."""

from pathlib import Path
from typing import Any

from torch import Tensor

from common.errors import CheckpointError
from common.formats.torch_file import RefusedNameError, StoredObject, UnreadableError, is_archive, read_torch_file


class PickledNetworks(dict[str, Any]):
    """The dict of a file that pickles a network whole."""


def read_pickled(path: Path, *, on_demand: bool = False) -> dict[str, Any]:
    """A checkpoint's dict; with the weights of the network that it pickles, if it does, under ``state_dict``.

    The network is the file's only one, the one called ``model``, or all that the file holds. ``on_demand`` as for
    `common.checkpoints.checkpoint.read_payload`.

    Raises:
        CheckpointError: the file is damaged, or holds anything but networks, tensors and plain types; names it.
    """
    try:
        return _with_weights(read_torch_file(path, mapped=on_demand, networks=True, expanded=True), path)
    except RefusedNameError as error:
        raise CheckpointError(
            f"{path}: holds {error}, and objects other than networks, tensors and plain types are refused, since "
            "loading them could run code"
        ) from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror})") from error
    except UnreadableError as error:
        kind = "cannot be read, damaged or truncated" if is_archive(path) else "not a checkpoint, or a damaged one"
        raise CheckpointError(f"{path}: {kind} ({error})") from error


def _with_weights(payload: Any, path: Path) -> dict[str, Any]:
    if isinstance(payload, StoredObject):
        return PickledNetworks(state_dict=_weights(payload))
    if not isinstance(payload, dict):
        raise CheckpointError(f"{path}: holds a {type(payload).__name__}, expected a checkpoint's dict")
    networks = {key: value for key, value in payload.items() if isinstance(value, StoredObject)}
    rest = {key: value for key, value in payload.items() if key not in networks}
    if not networks or "state_dict" in rest:
        return rest
    network = networks["model"] if "model" in networks else next(iter(networks.values()))
    return PickledNetworks(rest | {"state_dict": _weights(network)})


def _weights(network: StoredObject, prefix: str = "") -> dict[str, Tensor]:
    """A network's parameters and buffers by name, as its ``state_dict()`` would give them."""
    state = network.state
    transient = state.get("_non_persistent_buffers_set", ())
    values = {**state.get("_parameters", {}), **state.get("_buffers", {})}
    weights = {
        prefix + name: value for name, value in values.items() if isinstance(value, Tensor) and name not in transient
    }
    for name, child in state.get("_modules", {}).items():
        if isinstance(child, StoredObject):
            weights |= _weights(child, f"{prefix}{name}.")
    return weights
