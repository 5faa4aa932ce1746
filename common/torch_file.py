"""Read files written by torch.save without running code in them."""

import io
import pickle
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.serialization import StorageType

from common.errors import InputError, at, reason
from common.files import check_file, write_atomically

_NETWORK_PACKAGES = "glow glow_old waveglow tacotron2 tacotron2_common common model layers".split()

# Warnings about pickle versions, tensor types and source code: either an error follows, or they don't matter.
warnings.filterwarnings("ignore", module=r"torch\.serialization|torch\._utils|torch\._weights|common\.torch")


def read_torch_file(
    path: Path, *, wanted: str, mapped: bool = False, error: type[InputError] = InputError, where: str = ""
) -> Any:
    """Load the tensors, numbers, text and plain containers from a torch.save file to the CPU.

    Pickled networks become `StoredObject`. With ``mapped``, an archive's tensors are read from disk when they're used.
    Raises ``error`` if the file is damaged or contains anything else; ``wanted`` describes the expected file, and
    ``where`` is the place that names the file.
    """
    try:
        load = partial(torch.load, path, map_location="cpu", mmap=mapped and zipfile.is_zipfile(path))
        try:
            return load(weights_only=True)
        except pickle.UnpicklingError:
            return load(weights_only=False, pickle_module=_PICKLE_MODULE)
    except Exception as failure:  # a damaged file may raise anything in torch
        of_script = "TorchScript" in str(failure)
        advice = "give the checkpoint that the TorchScript file was made from" if of_script else f"expected {wanted}"
        raise error(f"{path}: cannot be read ({reason(failure)}); {advice}{at(where)}") from failure


class StoredObject:
    """The state of an object whose class isn't loaded."""

    dump_patches = False  # torch reads this if a file contains the class's source
    state: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, *arguments: Any) -> None:
        """Ignore the arguments of the original class."""

    def __setstate__(self, state: Any) -> None:
        """Keep the state."""
        self.state = state if isinstance(state, dict) else {}


_ALLOWED: dict[str, Any] = {  # functions that a pickle may call
    "collections.OrderedDict": OrderedDict,
    "builtins.set": set,
    "_codecs.encode": lambda text, encoding: text.encode("latin-1"),  # bytes, as Python 3 writes them for Python 2
    "torch.Size": torch.Size,
    "torch.device": torch.device,
    "torch._utils._rebuild_tensor": torch._utils._rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": torch._utils._rebuild_tensor_v2,
    "torch._utils._rebuild_parameter": lambda data, *_: data,
}


class _NetworkUnpickler(pickle.Unpickler):
    """Creates only tensors, plain containers and `StoredObject`.

    torch.load(weights_only=True) refuses pickled networks, and legacy files that contain their classes' source.
    """

    def find_class(self, module: str, name: str) -> Any:
        """Return the replacement for a name; raises UnpicklingError if there is none."""
        full_name = f"{module.replace('__builtin__', 'builtins')}.{name}"
        if full_name in _ALLOWED:
            return _ALLOWED[full_name].__call__  # a pickle can't set its attributes
        if module == "torch" and name.endswith("Storage"):
            return StorageType(name)
        if module == "torch" and isinstance(dtype := getattr(torch, name, None), torch.dtype):
            return dtype
        if module.startswith("torch.nn.") or module.partition(".")[0] in _NETWORK_PACKAGES:
            return StoredObject
        raise pickle.UnpicklingError(f"{full_name} is refused, as it could run code")


_PICKLE_MODULE = SimpleNamespace(
    __name__=__name__,
    Unpickler=_NetworkUnpickler,
    load=lambda file, **options: _NetworkUnpickler(file, **options).load(),
)


def read_plain_tensor(path: Path) -> Tensor | None:
    """Read a tensor three times as fast as torch.load; returns None for other kinds of files."""

    def storage(saved: Any) -> Any:
        _, kind, key, _, count = saved
        found = archive.get_storage_from_record(f"data/{key}", count * kind.dtype.itemsize, torch.UntypedStorage)
        return torch.storage.TypedStorage(wrap_storage=found.untyped_storage(), dtype=kind.dtype, _internal=True)

    try:
        archive: Any = torch._C.PyTorchFileReader(str(path))
        unpickler = _NetworkUnpickler(io.BytesIO(archive.get_record("data.pkl")))
        unpickler.persistent_load = storage  # type: ignore[method-assign]
        value = unpickler.load()
    except Exception:  # torch.load will read the file or report what is wrong
        return None
    return value if isinstance(value, Tensor) else None


def save_tensor(path: Path, tensor: Tensor, *, durable: bool = True, shared: bool = False) -> None:
    """Write one tensor to ``path`` with torch.save; the other arguments are those of `write_atomically`."""
    # torch.save would write a view's whole storage
    tensor = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
    write_atomically(path, lambda file: torch.save(tensor, file), durable=durable, shared=shared)


def load_tensor(path: Path, *, where: str = "") -> Tensor:
    """Read one tensor; a missing or damaged file raises an InputError that names ``where`` (``list.txt:7``)."""
    check_file(path, where=where)
    value = read_plain_tensor(path)
    if value is None:
        value = read_torch_file(path, wanted="one tensor written by torch.save", where=where)
    if not isinstance(value, Tensor):
        raise InputError(f"{path}: holds a {type(value).__name__}, expected one tensor{at(where)}")
    return value.detach()
