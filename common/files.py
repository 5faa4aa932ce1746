"""Atomic writes of files, and readers that name the file which cannot be read."""

import codecs
import hashlib
import io
import json
import os
import pickle
import stat
import sys
import uuid
import warnings
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from common.errors import InputError, at, shown

_BLOCK = 1 << 20  # bytes
_LARGEST_TEXT = 1 << 30  # bytes, far above any list
_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a named pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
_KINDS |= {stat.S_IFSOCK: "a socket"}
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
    check_file(path, where=where)
    with suppress(Exception):  # whatever it is, torch's own reader below says it, or can read the file
        return _TensorFile(path).read()
    try:
        value = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # bytes of another kind are read as a pickle, which then raises anything
        wanted = "expected one tensor as torch.save writes it"
        raise InputError(f"{path}: not a readable tensor file; is it truncated? {wanted}{at(where)}") from error
    if not isinstance(value, Tensor):
        raise InputError(f"{path}: holds a {type(value).__name__}, expected one tensor{at(where)}")
    return value


def tensor_shape(path: Path, *, where: str = "") -> tuple[int, ...]:
    """The shape of the tensor in a file, whose values are not read; raises as `load_tensor`."""
    check_file(path, where=where)
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


def _rebuild_tensor(storage: Tensor, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> Tensor:
    return storage.as_strided(size, stride, offset)


_NAMES = {"torch._utils._rebuild_tensor_v2": _rebuild_tensor, "collections.OrderedDict": OrderedDict}


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text to ``path`` atomically."""
    write_atomically(path, lambda file: file.write(text.encode("utf-8")))


def write_json(path: Path, value: Any) -> None:
    """Write plain types to ``path`` as JSON, atomically."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Read JSON; a missing or malformed file is an InputError that names it (and the line)."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON ({error.msg})") from error


def read_yaml(path: Path) -> Any:
    """Read YAML; a missing or malformed file is an InputError that names it (and the place)."""
    import yaml  # here, as few commands need it

    try:
        return yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not YAML ({' '.join(str(error).split())})") from error


def check_file(path: Path, *, kind: str = "file", where: str = "", error: type[InputError] = InputError) -> int:
    """The size in bytes of a file that can be opened: opening a pipe waits for its writer, and a device may never end.

    Raises:
        InputError: there is no such ``kind`` of file, or the path is of a folder, a pipe, a device or a socket; of
            the type ``error``, with ``where`` (``list.txt:7``).
    """
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError) as missing:
        raise error(f"{path}: no such {kind}{at(where)}") from missing
    except (OSError, ValueError) as unreadable:
        reason = getattr(unreadable, "strerror", None) or unreadable
        raise error(f"{shown(str(path))}: cannot be read ({reason}){at(where)}") from unreadable
    if not stat.S_ISREG(status.st_mode):
        found = _KINDS.get(stat.S_IFMT(status.st_mode), "of no known kind")
        raise error(f"{path}: {found}, expected a {kind}{at(where)}")
    return status.st_size


def read_bytes(path: Path, *, largest: int = _LARGEST_TEXT, kind: str = "file") -> bytes:
    """The bytes of a file of at most ``largest``; raises as `check_file`."""
    if check_file(path, kind=kind) > largest:
        raise InputError(f"{path}: larger than {largest} bytes, the most that such a file may have")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def read_text(path: Path, *, largest: int = _LARGEST_TEXT, kind: str = "file") -> str:
    """UTF-8 text, without a byte order mark; a file that is none is an InputError that names it, and the line."""
    data = read_bytes(path, largest=largest, kind=kind)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{path}: UTF-16 text; save the {kind} as UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = error.start - data.rfind(b"\n", 0, error.start)
        raise InputError(f"{path}:{line}: byte {byte} is not UTF-8; save the {kind} as UTF-8") from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(f"{path}:{line}: a zero byte; expected UTF-8 text (UTF-16 without a byte order mark has them)")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_lines(path: Path) -> list[str]:
    """Lines of UTF-8 text; raises as `read_text`."""
    return read_text(path).removesuffix("\n").split("\n")  # splitlines() would split at characters of texts too


def sha256(path: Path) -> str:
    """SHA-256 of a file's contents, 64 hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
