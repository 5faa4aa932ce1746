"""Atomic writes of files, and readers that name the file which cannot be read."""

import hashlib
import json
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from common.errors import InputError, at
from common.torch_file import UnreadableError, read_torch_file

_BLOCK = 1 << 20  # bytes


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
    return _read_tensor(path, where=where, values=True)


def tensor_shape(path: Path, *, where: str = "") -> tuple[int, ...]:
    """The shape of the tensor in a file, whose values are not read; raises as `load_tensor`."""
    return tuple(_read_tensor(path, where=where, values=False).shape)


def _read_tensor(path: Path, *, where: str, values: bool) -> Tensor:
    wanted = "expected one tensor as torch.save writes it"
    try:
        value = read_torch_file(path, values=values)
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file{at(where)}") from error
    except (OSError, UnreadableError) as error:
        if path.is_dir():
            raise InputError(f"{path}: a folder, expected a file of one tensor{at(where)}") from error
        raise InputError(
            f"{path}: not a readable tensor file ({error}); is it truncated? {wanted}{at(where)}"
        ) from error
    if not isinstance(value, Tensor):
        raise InputError(f"{path}: holds a {type(value).__name__}, expected one tensor{at(where)}")
    return value


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
