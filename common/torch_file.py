"""Read files of torch.save without running code in them."""

import io
import pickle
import sys
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

# About versions of pickles, kinds of tensors and source code: either an error follows, or it doesn't matter.
warnings.filterwarnings("ignore", module=r"torch\.serialization|torch\._utils|torch\._weights|common\.torch")


def read_torch_file(
    path: Path, *, wanted: str, mapped: bool = False, error: type[InputError] = InputError, where: str = ""
) -> Any:
    """Read the tensors, numbers, text and plain containers in a file of torch.save to the CPU.

    Pickled networks become `StoredObject`. With ``mapped``, tensors of an archive are read from the disk when they are
    used. Raises an InputError of type ``error`` if the file is damaged or names anything else; ``wanted`` describes the
    expected file, and ``where`` is the place that names it.
    """
    try:
        load = partial(torch.load, path, map_location="cpu", mmap=mapped and zipfile.is_zipfile(path))
        try:
            return load(weights_only=True)
        except pickle.UnpicklingError:
            return load(weights_only=False, pickle_module=_PICKLE_MODULE)
    except Exception as failure:  # a damaged file may raise anything in torch
        of_script = "TorchScript" in str(failure)
        advice = "give the checkpoint that a TorchScript file was made of" if of_script else f"expected {wanted}"
        raise error(f"{path}: cannot be read ({reason(failure)}); {advice}{at(where)}") from failure


class StoredObject:
    """The state of an object whose class is unknown here."""

    dump_patches = False  # torch asks this of classes whose source a file holds
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
    """Makes tensors, plain containers and `StoredObject` only.

    torch.load(weights_only=True) refuses pickled networks, and legacy files with the source of their classes.
    """

    def find_class(self, module: str, name: str) -> Any:
        """Return the replacement of a name; raises UnpicklingError if it has none."""
        full_name = f"{module.replace('__builtin__', 'builtins')}.{name}"
        if full_name in _ALLOWED:
            return _ALLOWED[full_name].__call__  # a pickle can't set attributes of it
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


class _TensorUnpickler(_NetworkUnpickler):
    """Reads the pickle of an archive, and the records of numbers that it names."""

    def __init__(self, archive: Any) -> None:
        super().__init__(io.BytesIO(archive.get_record("data.pkl")))
        self._archive = archive

    def find_class(self, module: str, name: str) -> Any:
        """Return the replacement of a name, or a storage type."""
        return StorageType(name) if name.endswith("Storage") else super().find_class(module, name)

    def persistent_load(self, saved: Any) -> Any:
        """Return the storage with the numbers of a record."""
        _, kind, key, _, count = saved
        record, size = f"data/{key}", count * kind.dtype.itemsize
        if self._archive.get_record_size(record) != size:
            raise pickle.UnpicklingError(f"{record} has not the size that its tensor says")
        storage = self._archive.get_storage_from_record(record, size, torch.UntypedStorage)._typed_storage()
        return torch.storage.TypedStorage(wrap_storage=storage._untyped_storage, dtype=kind.dtype, _internal=True)


def read_plain_tensor(path: Path) -> Tensor | None:
    """Read a tensor in a third of torch.load's time; returns None for files of other kinds, and with PyTorch 2.11."""
    try:
        archive = torch._C.PyTorchFileReader(str(path))
        if archive.get_record("byteorder") != sys.byteorder.encode():
            return None
        value = _TensorUnpickler(archive).load()
    except Exception:  # torch.load reads the file, or says what is wrong
        return None
    return value if isinstance(value, Tensor) else None


def save_tensor(path: Path, tensor: Tensor, *, durable: bool = True, shared: bool = False) -> None:
    """Write one tensor to ``path`` by torch.save; other arguments are those of `write_atomically`."""
    # a view would be saved together with everything it is a view of
    tensor = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
    write_atomically(path, lambda file: torch.save(tensor, file), durable=durable, shared=shared)


def load_tensor(path: Path, *, where: str = "") -> Tensor:
    """Read one tensor; ``where`` (``list.txt:7``) is named in the InputError for a missing or broken file."""
    check_file(path, where=where)
    value = read_plain_tensor(path)
    if value is None:
        value = read_torch_file(path, wanted="one tensor as torch.save writes it", where=where)
    if not isinstance(value, Tensor):
        raise InputError(f"{path}: holds a {type(value).__name__}, expected one tensor{at(where)}")
    return value.detach()
