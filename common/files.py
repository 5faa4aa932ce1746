"""Atomic writes of files, and readers that name the file which cannot be read."""

import hashlib
import io
import json
import os
import pickle
import stat
import sys
import tempfile
import uuid
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import torch
from torch import Tensor

from common.errors import InputError, OutputError, at

_BLOCK = 1 << 20  # bytes
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


@contextmanager
def writing(path: Path, hint: str = "") -> Iterator[None]:
    """Whatever keeps ``path`` from being written is one OutputError that names it, with a ``hint`` what to do."""
    try:
        yield
    except OutputError as error:
        raise OutputError(f"{error}{hint}") from error
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({why_not_written(path, error)}){hint}") from error


def why_not_written(path: Path, error: OSError) -> str:
    """What stands in the way of a file or folder, or the system's words for ``error``."""
    if isinstance(error, NotADirectoryError | FileExistsError):
        for parent in path.parents:
            with suppress(OSError):
                if parent.exists() and not parent.is_dir():
                    return f"{parent} is no folder"
    return error.strerror or str(error)


def make_folder(path: Path, hint: str = "") -> None:
    """Make a folder and those above it where they are missing; raises as `writing`."""
    with writing(path, hint):
        if path.exists() and not path.is_dir():
            raise OutputError(f"{path}: is no folder, and files are to be written into it")
        path.mkdir(parents=True, exist_ok=True)


def check_output_file(path: Path) -> None:
    """Make a file's folder, and refuse now what could not be written after the work; raises as `write_atomically`."""
    with writing(path):
        target = _target(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target.parent):
            pass


def write_atomically(
    path: Path, write: Callable[[BinaryIO], object], *, durable: bool = True, shared: bool = False
) -> None:
    """Let ``write`` fill a temporary file, then rename it to ``path``, which is the old file or the new one.

    A kill can leave ``.<name>.tmp`` behind, which the next write of the same file replaces. One process writes a
    given path at a time. ``durable=False`` leaves out the flush to the disk (for thousands of small files that are
    checked when they are read again): a kill is still harmless, a power cut may lose the newest files. ``shared``
    lets several processes write the same path at once, the last of them wins; each kill may then leave a file behind.

    Raises:
        OutputError: the disk is full, the place is read-only, ``path`` is a folder or a device, or the like.
    """
    with writing(path):
        target = _target(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        unique = f".{uuid.uuid4().hex}" if shared else ""
        temporary = target.with_name(f".{target.name}{unique}.tmp")
        try:
            _fill(temporary, write, durable=durable)
            temporary.replace(target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    if durable:
        _flush_folder(target.parent)


def _target(path: Path) -> Path:
    """The file that ``path`` names, through links; raises OSError for what a renamed file must not replace."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if not stat.S_ISREG(mode):
        raise OSError("a folder is there" if stat.S_ISDIR(mode) else "it is a device or pipe, and no file")
    return path.resolve() if path.is_symlink() else path


def _fill(path: Path, write: Callable[[BinaryIO], object], *, durable: bool) -> None:
    """Let ``write`` fill a file; raises OSError, whatever its library makes of that."""
    with OutputFile(path, "wb") as raw, io.BufferedWriter(raw) as file:
        try:
            write(file)
            file.flush()
        except Exception as error:
            if isinstance(error.__context__, KeyboardInterrupt):  # PyTorch's writer makes a RuntimeError of it
                raise error.__context__ from None
            if raw.error is None:
                raise
        if raw.error is not None:
            raise raw.error
        if durable:
            os.fsync(raw.fileno())


class OutputFile(io.FileIO):
    """A file that takes what it cannot write, and remembers why.

    Libraries that call ``write`` from C are confused by an exception: PyTorch raises a RuntimeError of its own, and
    libsndfile prints a traceback.
    """

    error: OSError | None = None  # the first

    def write(self, data: Any) -> int:
        """Write bytes, unless an earlier write failed."""
        if self.error is None:
            try:
                return super().write(data)
            except OSError as error:
                self.error = error
        return memoryview(data).nbytes


def unwritten(stream: TextIO) -> OSError | None:
    """Why something that was printed to ``stream``, over an `OutputFile`, is not written; None if all of it is."""
    stream.flush()
    return getattr(getattr(getattr(stream, "buffer", None), "raw", None), "error", None)


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
    return value


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


def read_text(path: Path) -> str:
    """UTF-8 text; a file that cannot be read is an InputError that names it."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except (OSError, UnicodeDecodeError) as error:
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
