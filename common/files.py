"""Atomic writes of files, and readers that name the file which cannot be read."""

import hashlib
import io
import json
import os
import pickle
import re
import stat
import sys
import uuid
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from common.errors import InputError, at, shown

_BLOCK = 1 << 20  # bytes
# Far above any file of its kind: bytes, and levels of objects and lists.
_LARGEST_TEXT, _LARGEST_JSON, _LARGEST_YAML = 1 << 30, 16 << 20, 64 << 10
_DEEPEST_JSON = 50
_TOO_DEEP = f"nested too deeply, expected at most {_DEEPEST_JSON} levels"
_NEWLINE = "\n"
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|(-?\d{1000,}|NaN|-?Infinity)|\d+')  # [1]: what is refused
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # an escape of half a character
STORAGES = {  # names in files of torch.save
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "DoubleStorage": torch.float64,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}
_DTYPES = frozenset(STORAGES.values())
# Of files that are no tensors' (`load_tensor`): the line that refuses them says enough.
warnings.filterwarnings("ignore", message="Detected pickle protocol", category=UserWarning)


def write_atomically(
    path: Path, write: Callable[[BinaryIO], object], *, durable: bool = True, shared: bool = False
) -> None:
    """Let ``write`` fill a temporary file, then rename it to ``path``, which is the old file or the new one.

    A kill can leave ``.<name>.tmp`` behind, which the next write of the same file replaces. One process writes a
    given path at a time. ``durable=False`` leaves out the flush to the disk (for thousands of small files that are
    checked when they are read again): a kill is still harmless, a power cut may lose the newest files. ``shared``
    lets several processes write the same path at once, the last of them wins; each kill may then leave a file behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unique = f".{uuid.uuid4().hex}" if shared else ""
    temporary = path.with_name(f".{path.name}{unique}.tmp")
    try:
        with temporary.open("wb") as file:
            write(file)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    """The new name is on the disk only when its folder is; some file systems refuse this, and lose nothing else."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def save_tensor(path: Path, tensor: Tensor, *, durable: bool = True, shared: bool = False) -> None:
    """Write one tensor to ``path`` atomically, in torch's format; the others as for `write_atomically`."""
    # a view would be saved together with everything it is a view of
    tensor = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
    write_atomically(path, lambda file: torch.save(tensor, file), durable=durable, shared=shared)


def load_tensor(path: Path, *, where: str = "") -> Tensor:
    """Read one tensor; ``where`` (``list.txt:7``) is named in the InputError for a missing or broken file."""
    with suppress(Exception):  # whatever it is, torch's own reader below says it, or can read the file
        return _TensorFile(path).read()
    try:
        value = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file{at(where)}") from error
    except IsADirectoryError as error:
        raise InputError(f"{path}: a folder, expected a file of one tensor{at(where)}") from error
    except Exception as error:  # bytes of another kind are read as a pickle, which then raises anything
        wanted = "expected one tensor as torch.save writes it"
        raise InputError(f"{path}: not a readable tensor file; is it truncated? {wanted}{at(where)}") from error
    if not isinstance(value, Tensor):
        raise InputError(f"{path}: holds a {type(value).__name__}, expected one tensor{at(where)}")
    if problem := tensor_problem(value):
        raise InputError(f"{path}: {problem}{at(where)}")
    return value.detach()


def tensor_problem(tensor: Tensor) -> str | None:
    """Why a file's tensor cannot be computed with, if it cannot: without dense values, or not of usual numbers."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        layout = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
        return f"a tensor of layout {layout}, expected a dense one"
    if tensor.is_meta:
        return "a tensor without values (on the device meta)"
    if tensor.dtype not in _DTYPES:
        return f"of {str(tensor.dtype).removeprefix('torch.')}, expected real numbers of a usual type"
    return None


def tensor_shape(path: Path, *, where: str = "") -> tuple[int, ...]:
    """The shape of the tensor in a file, whose values are not read; raises as `load_tensor`."""
    with suppress(Exception):  # as above
        return tuple(_TensorFile(path, values=False).read().shape)
    return tuple(load_tensor(path, where=where).shape)


class _TensorFile(pickle.Unpickler):
    """The one tensor in a file of torch.save, whose description may name what a tensor needs and nothing else.

    Safe as ``torch.load(weights_only=True)``, which takes six times as long: its unpickler is written in Python.
    """

    def __init__(self, path: Path, *, values: bool = True) -> None:
        self._records = torch._C.PyTorchFileReader(str(path))
        self._values = values  # False: an empty tensor of the same shape
        super().__init__(io.BytesIO(self._records.get_record("data.pkl")))

    def read(self) -> Tensor:
        """The tensor on the CPU; raises anything where the file holds something else."""
        if self._records.get_record("byteorder") != sys.byteorder.encode():
            raise pickle.UnpicklingError("the other byte order")
        value = self.load()
        if not isinstance(value, Tensor):
            raise pickle.UnpicklingError("no tensor")
        return value

    def find_class(self, module: str, name: str) -> Any:
        """What stands for a name in the file."""
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        return _NAMES[f"{module}.{name}"]

    def persistent_load(self, pid: tuple[str, torch.dtype, str, str, int]) -> Tensor:
        """A storage as a flat tensor."""
        _, dtype, key, _, size = pid
        if not self._values:
            return torch.empty(size, dtype=dtype, device="meta")
        stored = self._records.get_storage_from_record(f"data/{key}", size, dtype).untyped_storage()
        return torch.empty(0, dtype=dtype).set_(stored)


def _rebuild_tensor(storage: Tensor, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *more: Any) -> Tensor:
    if any(more[2:]):  # after what gradients need: that values stand for their opposites, and the like
        raise pickle.UnpicklingError("a tensor whose values are not those that are stored")
    return storage.as_strided(size, stride, offset)


_NAMES = {"torch._utils._rebuild_tensor_v2": _rebuild_tensor, "collections.OrderedDict": OrderedDict}


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text to ``path`` atomically."""
    write_atomically(path, lambda file: file.write(text.encode("utf-8")))


def write_json(path: Path, value: Any) -> None:
    """Write plain types to ``path`` as JSON, atomically."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path, *, largest: int = _LARGEST_JSON) -> Any:
    """Read JSON of at most ``largest`` bytes; a file that is missing, too large, nested too deeply or not JSON is an
    InputError that names it (and the line)."""
    return parse_json(read_text(path, largest=largest), where=str(path))


def parse_json(text: str, *, where: str) -> Any:
    """The values of a text that ``where`` names; InputError where it is not JSON (RFC 8259, each key once) or too
    deep."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise InputError(f"{where}:{error.lineno}: not JSON ({error.msg})") from error
    except RecursionError as error:
        raise InputError(f"{where}: {_TOO_DEEP}") from error
    except InputError as error:
        raise InputError(f"{where}: not JSON ({error})") from error
    except ValueError as error:
        found = next((found for found in _JSON_TOKEN.finditer(text) if found[1]), None)
        line = f":{text.count(_NEWLINE, 0, found.start()) + 1}" if found else ""
        reason = f"a number of {len(found[1])} digits" if found and found[1][-1].isdigit() else error
        raise InputError(f"{where}{line}: not JSON ({reason})") from error
    level = [value]
    for _ in range(_DEEPEST_JSON):
        rows = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [item for row in rows for item in row if isinstance(item, dict | list)]
    if level:
        raise InputError(f"{where}: {_TOO_DEEP}")
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = shown(error.object[error.start])
            raise InputError(f"{where}: not JSON ({half} is half a character, expected both halves)") from error
    return value


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a number in JSON")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        most_frequent = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise InputError(f"key {shown(most_frequent)} twice in one object")
    return values


def read_yaml(path: Path) -> Any:
    """Read YAML as `common.yaml_loader.parse_yaml`; a missing or malformed file is an InputError that names it and the
    line."""
    from common.yaml_loader import parse_yaml  # here, as few commands need it

    return parse_yaml(read_text(path, largest=_LARGEST_YAML), where=str(path))


def read_text(path: Path, *, largest: int = _LARGEST_TEXT) -> str:
    """UTF-8 text of at most ``largest`` bytes; a file that cannot be read is an InputError that names it."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            data = file.read(min(largest, status.st_size if stat.S_ISREG(status.st_mode) else largest) + 1)
        if len(data) > largest:
            raise InputError(f"{path}: larger than {largest} bytes, the most that such a file may have")
        return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig").read()
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error})") from error


def read_lines(path: Path) -> list[str]:
    """Lines of UTF-8 text; raises as `read_text`."""
    return read_text(path).splitlines()


def sha256(path: Path) -> str:
    """SHA-256 of a file's contents, 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
