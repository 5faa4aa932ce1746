"""Weights out of files that pickle whole networks, without importing or running anything that such a file names.

Only tensors and plain containers are made as what they are. Of the classes of networks nothing is made but an object
that holds the state; every other name in a file is refused. Both of torch.save's formats are read here, since its own
safe reader takes no networks.
"""

import pickle
import struct
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from common.errors import CheckpointError
from common.files import STORAGES

_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C  # opens files of torch.save before version 1.6
_NETWORK_PACKAGES = ("glow", "glow_old", "waveglow", "tacotron2", "tacotron2_common", "common", "model", "layers")
_RENAMED = {"__builtin__": "builtins"}  # since Python 2, whose names torch.save still writes


class RefusedGlobal(pickle.UnpicklingError):
    """A file names something that is neither a tensor, a plain container nor part of a network."""


class StoredObject:
    """An object of a class that only the file knows: its state, and no behavior."""

    state: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> "StoredObject":
        made = super().__new__(cls)
        made.state = {}
        return made

    def __setstate__(self, state: Any) -> None:
        self.state = state if isinstance(state, dict) else {}


class _Function:
    """What a file may call; it cannot be given a state."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("a function with a state")


class _Unpickler(pickle.Unpickler):
    """``load_storage`` makes a flat tensor of what a file says of a storage."""

    def __init__(self, file: IO[bytes], *, load_storage: Callable[..., Tensor] | None = None) -> None:
        super().__init__(file, encoding="utf-8")
        self._load_storage = load_storage

    def find_class(self, module: str, name: str) -> Any:
        """What stands for a name of the file."""
        module = _RENAMED.get(module, module)
        found = _KNOWN.get(f"{module}.{name}")
        if found is not None:
            return found
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        if module in ("torch", "torch.cuda", "torch.storage") and name in STORAGES:
            return STORAGES[name]
        if module.startswith("torch.nn.") or module.partition(".")[0] in _NETWORK_PACKAGES:
            return type(name, (StoredObject,), {"__module__": module})
        raise RefusedGlobal(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> Any:
        """A storage's flat tensor, or a class that the file keeps with its source, which is not looked at."""
        if self._load_storage is None or not isinstance(pid, tuple) or len(pid) < 2:
            raise pickle.UnpicklingError("a reference to what the file does not hold")
        if pid[0] == "module":
            return pid[1]
        if pid[0] == "storage" and isinstance(pid[1], torch.dtype):
            return self._load_storage(*pid[1:])
        raise RefusedGlobal(f"a reference to {pid[0]!r}")


def _rebuild_tensor(storage: Tensor, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> Tensor:
    return torch.as_strided(storage, size, stride, offset)


_KNOWN = {
    "collections.OrderedDict": OrderedDict,
    "builtins.set": set,
    "torch.Size": tuple,
    "torch.device": _Function(lambda *words: ":".join(map(str, words))),
    "torch._utils._rebuild_tensor": _Function(_rebuild_tensor),
    "torch._utils._rebuild_tensor_v2": _Function(_rebuild_tensor),
    "torch._utils._rebuild_parameter": _Function(lambda data, *_: data),
}


class PickledNetworks(dict[str, Any]):
    """The dict of a file that pickles a network whole."""


def read_pickled_networks(path: Path) -> dict[str, Any]:
    """A checkpoint's dict with the weights of the network that it pickles under ``state_dict``.

    The network is the file's only one, the one called ``model``, or all that the file holds.

    Raises:
        CheckpointError: the file is damaged, or holds anything but networks, tensors and plain types; names it.
    """
    try:
        payload = _read_zip(path) if zipfile.is_zipfile(path) else _read_legacy(path)
        return _with_weights(payload)
    except RefusedGlobal as error:
        raise CheckpointError(
            f"{path}: holds {error}, and objects other than networks, tensors and plain types are refused, since "
            "loading them could run code"
        ) from error
    except _UNREADABLE as error:
        raise CheckpointError(f"{path}: not a checkpoint, or a damaged one") from error


# All that an unpickler raises over bytes that are no pickle, or not that of a checkpoint.
_UNREADABLE = (
    *(pickle.UnpicklingError, zipfile.BadZipFile, struct.error, EOFError, OSError, MemoryError, RuntimeError),
    *(LookupError, TypeError, AttributeError, ValueError, ImportError, OverflowError),
)


def _read_zip(path: Path) -> Any:
    """torch.save's format since version 1.6: an archive of one pickle and a file for each storage."""
    storages: dict[str, Tensor] = {}
    with zipfile.ZipFile(path) as archive:
        pickles = [name for name in archive.namelist() if name.rpartition("/")[2] == "data.pkl"]
        if len(pickles) != 1:
            raise ValueError("expected one data.pkl")
        folder = pickles[0].removesuffix("data.pkl")

        def load_storage(dtype: torch.dtype, key: str, location: str, count: int) -> Tensor:
            if key not in storages:
                storages[key] = _flat(archive.read(f"{folder}data/{key}"), dtype)
            return storages[key]

        with archive.open(pickles[0]) as file:
            return _Unpickler(file, load_storage=load_storage).load()


def _read_legacy(path: Path) -> Any:
    """torch.save's format before version 1.6: pickles one after the other, then the storages."""
    storages: dict[str, Tensor] = {}

    def load_storage(
        dtype: torch.dtype, key: str, location: str, count: int, view: tuple[str, int, int] | None = None
    ) -> Tensor:
        if key not in storages:
            storages[key] = torch.zeros(count, dtype=dtype)
        if view is None:
            return storages[key]
        _, offset, size = view
        return storages[key][offset : offset + size]

    with path.open("rb") as file:
        if _Unpickler(file).load() != _MAGIC_NUMBER:
            raise ValueError("another magic number")
        _Unpickler(file).load()  # version of the format
        _Unpickler(file).load()  # sizes of C's types
        payload = _Unpickler(file, load_storage=load_storage).load()
        keys = _Unpickler(file).load()
        if set(keys) != set(storages):
            raise ValueError("other storages than the tensors are in")
        for key in keys:
            (count,) = struct.unpack("<q", file.read(8))
            storage = storages[key]
            if count != storage.numel():
                raise ValueError("a storage of another size")
            storage.copy_(_flat(file.read(count * storage.element_size()), storage.dtype))
    return payload


def _flat(data: bytes, dtype: torch.dtype) -> Tensor:
    """The numbers of a storage, which files hold with the least byte first."""
    if sys.byteorder != "little":
        raise ValueError("a machine with another order of bytes")
    return torch.frombuffer(bytearray(data), dtype=dtype) if data else torch.empty(0, dtype=dtype)


def _with_weights(payload: Any) -> dict[str, Any]:
    if isinstance(payload, StoredObject):
        return PickledNetworks(state_dict=_weights(payload))
    if not isinstance(payload, dict):
        raise TypeError("no dict")
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
