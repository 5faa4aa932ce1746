"""Files of torch.save, read in memory and time that their size bounds, without running anything that they name."""

import mmap
import os
import stat
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch
from torch import Tensor

from common.errors import shown
from common.formats.unpickler import LARGEST_PICKLE, RefusedNameError, StoredObject, Unpickler, UnreadableError

__all__ = ["RefusedNameError", "StoredObject", "UnreadableError", "archive_records", "is_archive", "read_torch_file"]

_MAGIC_NUMBER = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # after the protocol: opens files before version 1.6
_ARCHIVE = b"PK\x03\x04"  # opens the others
_MOST_PICKLES = 4 * LARGEST_PICKLE  # bytes, of those that a file before version 1.6 begins with
_LARGEST_DIRECTORY = 1 << 24  # bytes, of an archive; a storage takes 80
_DEEPEST = 200  # containers within each other; of pickled networks 40
_TOO_DEEP = f"containers more than {_DEEPEST} deep in each other"
_MOST_NODES = 2_000_000  # of what a file holds, where what is referred to twice counts twice
_MOST_EXPANDED = 1 << 33  # bytes of tensors that no storage holds
# What bytes raise that are no pickle, or describe no tensor.
_DAMAGED = (LookupError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError, struct.error)
_ALIGNMENT = 16  # bytes, of tensors that are used as they lie in the file

# Of an archive: its end, the same in 64 bits and where that is, an entry of its directory, and what precedes a file.
_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR = struct.Struct("<4sLQL")
_ENTRY = struct.Struct("<4s4H4x3L3H8xL")
_LOCAL = struct.Struct("<4s22x2H")


class Record(NamedTuple):
    """A file within an archive."""

    header: int  # where it begins
    size: int  # bytes, inflated
    packed: int  # bytes, as it lies there
    method: int  # of compression

    @property
    def stored(self) -> bool:
        """Whether it is not compressed."""
        return self.method == 0 and self.packed == self.size


def read_torch_file(
    path: Path, *, mapped: bool = False, values: bool = True, networks: bool = False, expanded: bool = False
) -> Any:
    """What torch.save has written: tensors, numbers, text and plain containers of them.

    ``mapped`` maps the storages of an archive, so that they are read when they are used; without ``values`` tensors
    have shapes alone; ``networks`` and ``expanded`` as for `Unpickler`.

    Raises:
        UnreadableError: the file holds anything else, or is damaged.
        OSError: it cannot be opened.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise UnreadableError("a folder, a pipe or a device")
    form = {"networks": networks, "expanded": expanded}
    with path.open("rb") as file:
        try:
            if file.read(len(_ARCHIVE)) == _ARCHIVE:
                archive = _Archive(path, file, mapped=mapped, values=values)
                value = Unpickler(archive.pickle, load_storage=archive.load_storage, **form).load()
            else:
                value = _read_legacy(file, form, values=values)
            if isinstance(value, dict | list | tuple | StoredObject):
                _check_tree(value, size=os.fstat(file.fileno()).st_size)
            return value
        except MemoryError as error:
            raise UnreadableError("larger than this machine's memory") from error
        except _DAMAGED as error:
            raise UnreadableError(f"{type(error).__name__} {shown(str(error))}") from error


def is_archive(path: Path) -> bool:
    """Whether a file begins as ZIP archives do."""
    with path.open("rb") as file:
        return file.read(len(_ARCHIVE)) == _ARCHIVE


def archive_records(path: Path) -> dict[str, Record]:
    """The files in an archive by name.

    Raises:
        UnreadableError: it is damaged.
        OSError: it cannot be opened.
    """
    with path.open("rb") as file:
        try:
            return _directory(file)
        except _DAMAGED as error:
            raise UnreadableError("an archive with a damaged directory") from error


def _directory(file: BinaryIO) -> dict[str, Record]:
    size = os.fstat(file.fileno()).st_size
    end = max(size - _END.size - _LOCATOR.size, 0)
    tail = _read_at(file, end, size - end)
    if len(tail) < _END.size or tail[-_END.size :][:4] != b"PK\x05\x06":
        raise UnreadableError("an archive without end")
    *_, length, start, _ = _END.unpack(tail[-_END.size :])
    if tail[:4] == b"PK\x06\x07":
        _, _, place, _ = _LOCATOR.unpack(tail[: _LOCATOR.size])
        found = _read_at(file, min(place, size), _END_64.size)
        if found[:4] == b"PK\x06\x06":  # whatever the numbers of 32 bits are, as PyTorch's reader has it
            *_, length, start = _END_64.unpack(found)
    if length > _LARGEST_DIRECTORY or start + length > size:
        raise UnreadableError(f"an archive with a directory of {length} bytes")
    return dict(_entries(_read_at(file, start, length), size))


def _entries(data: bytes, size: int) -> Iterator[tuple[str, Record]]:
    """Names and records of a directory of an archive of ``size`` bytes."""
    place = 0
    while place < len(data):
        sign, _, _, flags, method, _, packed, inflated, n_name, n_extra, n_more, header = _ENTRY.unpack_from(
            data, place
        )
        begin, end = place + _ENTRY.size, place + _ENTRY.size + n_name
        place = end + n_extra + n_more
        if sign != b"PK\x01\x02" or place > len(data):
            raise UnreadableError("an archive with a damaged directory")
        name = str(data[begin:end], "utf-8")
        if 0xFFFFFFFF in (inflated, packed, header):
            long = _long_numbers(data[end : end + n_extra])
            inflated, packed, header = (next(long, 0) if n == 0xFFFFFFFF else n for n in (inflated, packed, header))
        if header + packed > size or flags & 1:
            raise UnreadableError(f"an archive whose {shown(name)} reaches beyond it, or is encrypted")
        yield name, Record(header, inflated, packed, method)


def _long_numbers(extra: bytes) -> Iterator[int]:
    """Those of 64 bits that an entry has beside it."""
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        if kind == 1:
            yield from struct.unpack_from(f"<{length // 8}Q", extra, 4)
        extra = extra[4 + length :]


def _read_at(file: BinaryIO, place: int, count: int) -> bytes:
    file.seek(place)
    return file.read(count)


class _Archive:
    """torch.save's format since version 1.6: an archive of one pickle and a file for each storage."""

    def __init__(self, path: Path, file: BinaryIO, *, mapped: bool, values: bool) -> None:
        self._path, self._file, self._mapped, self._values = path, file, mapped, values
        self._records = _directory(file)
        self.size = os.fstat(file.fileno()).st_size
        self._left = self.size  # bytes of storages; more of them lie over each other
        pickles = [name for name in self._records if name.rpartition("/")[2] == "data.pkl"]
        if len(pickles) != 1:
            raise UnreadableError(f"an archive with {len(pickles)} files called data.pkl")
        self._folder = pickles[0].removesuffix("data.pkl")
        order = f"{self._folder}byteorder"
        if order in self._records and self._bytes_of(order) != sys.byteorder.encode():
            raise UnreadableError("numbers in the other order of bytes")
        self.pickle = self._bytes_of(pickles[0])
        self._storages: dict[str, Tensor] = {}  # as bytes
        self._whole: Tensor | None = None

    def _place_of(self, name: str) -> tuple[int, int]:
        """Where a file's bytes are, and how many."""
        record = self._records.get(name)
        if record is None:
            raise UnreadableError(f"an archive without {shown(name)}")
        if not record.stored:
            raise UnreadableError(f"{shown(name)} is compressed, which torch.save does not; save it again")
        sign, *lengths = _LOCAL.unpack(_read_at(self._file, record.header, _LOCAL.size))
        start = record.header + _LOCAL.size + sum(lengths)
        if sign != _ARCHIVE or start + record.size > self.size:
            raise UnreadableError(f"an archive whose {shown(name)} reaches beyond it")
        return start, record.size

    def _bytes_of(self, name: str) -> bytes:
        start, size = self._place_of(name)
        if size > LARGEST_PICKLE:
            raise UnreadableError(f"{shown(name)} has {size} bytes")
        return _read_at(self._file, start, size)

    def load_storage(self, dtype: torch.dtype, key: str, count: int) -> Tensor:
        """A storage as a flat tensor."""
        if key not in self._storages:
            self._storages[key] = self._load(f"{self._folder}data/{key}")
        stored = self._storages[key]
        if count * dtype.itemsize != stored.numel():
            raise UnreadableError(f"a storage of {count} {dtype} in {stored.numel()} bytes")
        return stored.view(dtype) if self._values else torch.empty(count, dtype=dtype, device="meta")

    def _load(self, name: str) -> Tensor:
        start, size = self._place_of(name)
        self._left -= size
        if self._left < 0:
            raise UnreadableError("an archive whose files lie over each other")
        if not self._values:
            return torch.empty(size, dtype=torch.uint8, device="meta")
        if not self._mapped or start % _ALIGNMENT or size == 0:
            return _read_storage(self._file, start, torch.empty(size, dtype=torch.uint8))
        if self._whole is None:
            self._whole = torch.from_file(str(self._path), shared=False, size=self.size, dtype=torch.uint8)
        return torch.empty(0, dtype=torch.uint8).set_(self._whole.untyped_storage()[start : start + size])


def _read_storage(file: BinaryIO, start: int, storage: Tensor) -> Tensor:
    file.seek(start)
    if storage.numel() and file.readinto(storage.view(torch.uint8).numpy()) != storage.nbytes:  # type: ignore[attr-defined]
        raise UnreadableError("truncated within a storage")
    return storage


def _read_legacy(file: BinaryIO, form: dict[str, bool], *, values: bool) -> Any:
    """torch.save's format before version 1.6: pickles one after the other, then the storages."""
    size = os.fstat(file.fileno()).st_size
    with mmap.mmap(file.fileno(), min(size, _MOST_PICKLES), access=mmap.ACCESS_READ) as data:
        if data[:1] != b"\x80" or data[2 : 2 + len(_MAGIC_NUMBER)] != _MAGIC_NUMBER:
            raise UnreadableError("not a file of torch.save")
        version = Unpickler(data, 2 + len(_MAGIC_NUMBER))
        version.load()
        machine = Unpickler(data, version.place)
        if not machine.load().get("little_endian") or sys.byteorder != "little":
            raise UnreadableError("numbers in the other order of bytes")
        storages: dict[str, Tensor] = {}
        left = size

        def load_storage(dtype: torch.dtype, key: str, count: int, view: Any = None) -> Tensor:
            nonlocal left
            if key not in storages:
                left -= count * dtype.itemsize
                if left < 0:
                    raise UnreadableError("storages of more bytes than the file; is it truncated?")
                storages[key] = torch.empty(count, dtype=dtype, device="cpu" if values else "meta")
            stored = storages[key]
            if stored.numel() != count or stored.dtype != dtype:
                raise UnreadableError("a storage of two sizes or types")
            if view is None:
                return stored
            _, offset, size = view
            return stored.narrow(0, offset, size)

        payload = Unpickler(data, machine.place, load_storage=load_storage, **form)
        value = payload.load()
        order = Unpickler(data, payload.place)
        keys, place = order.load(), order.place
    if len(keys) != len(storages) or set(keys) != set(storages):
        raise UnreadableError("other storages than the tensors are in")
    for key in keys:
        (count,) = struct.unpack("<q", _read_at(file, place, 8))
        if count != storages[key].numel():
            raise UnreadableError("a storage of another size")
        if values:
            _read_storage(file, place + 8, storages[key])
        place += 8 + storages[key].nbytes
    return value


class _Size(NamedTuple):
    """Of a value, where what is referred to twice counts twice."""

    n_values: int
    height: int  # containers within each other
    n_bytes: int  # of tensors
    n_converted: int  # of those that readers of weights convert to float32


def _check_tree(value: Any, *, size: int) -> None:
    """Refuse what is nested without end, and what grows as it is walked through or copied."""
    found = _measure(value, {}, 0)
    if found.n_values > _MOST_NODES:
        raise UnreadableError(f"values that refer to each other, which are more than {_MOST_NODES} in all")
    if found.n_bytes > 2 * size + _MOST_EXPANDED or found.n_converted > 2 * size:
        raise UnreadableError(f"tensors of many times the file's {size} bytes")


def _measure(value: Any, known: dict[int, _Size], depth: int) -> _Size:
    """The size of a container; ``known`` are the results by id."""
    items = value.state if isinstance(value, StoredObject) else value
    n_values, height, n_bytes, n_converted = 1, 0, 0, 0
    for item in items.values() if isinstance(items, dict) else items:
        n_values += 1
        if isinstance(item, Tensor):
            n_bytes += item.nbytes
            n_converted += item.nbytes * (item.is_floating_point() and item.dtype != torch.float32)
        elif isinstance(item, dict | list | tuple | StoredObject):
            if depth == _DEEPEST:
                raise UnreadableError(_TOO_DEEP)
            found = known.get(id(item)) or _measure(item, known, depth + 1)
            n_values, height = n_values + found.n_values, max(height, 1 + found.height)
            n_bytes, n_converted = n_bytes + found.n_bytes, n_converted + found.n_converted
    if depth + height > _DEEPEST:
        raise UnreadableError(_TOO_DEEP)
    known[id(value)] = _Size(n_values, height, n_bytes, n_converted)
    return known[id(value)]
