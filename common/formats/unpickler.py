"""An unpickler for files of torch.save that makes tensors, numbers, text and plain containers, and runs nothing.

Those of Python and PyTorch allocate what a file announces, and hash and copy whatever it nests; what this one takes is
bounded by the size of the pickle.
"""

import math
import mmap
import struct
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from common.errors import shown

_MOST_STEPS = 1_000_000  # of an unpickler; a tensor takes 36
LARGEST_PICKLE = 1 << 25  # bytes
_LARGEST_INTEGER = 9  # bytes
_LONGEST_SHAPE = 64  # dimensions
_MOST_EXPANDED = 1 << 25  # elements of a tensor in a storage of fewer: published test files have some
_MOST_GIVEN = 10  # values for a function; a tensor is made of 6
_LONGEST_NAME = 300  # bytes of a module's and a class's
_NETWORK_PACKAGES = ("glow", "glow_old", "waveglow", "tacotron2", "tacotron2_common", "common", "model", "layers")
_INT32, _UINT32, _UINT16, _FLOAT64 = map(struct.Struct, ("<i", "<I", "<H", ">d"))
_RENAMED = {"__builtin__": "builtins"}  # since Python 2, whose names torch.save still writes
_STORAGES = {
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
    "ComplexFloatStorage": torch.complex64,
    "ComplexDoubleStorage": torch.complex128,
    "UntypedStorage": torch.uint8,
}
_DTYPES = {name: value for name, value in vars(torch).items() if isinstance(value, torch.dtype)}

_OTHER_TENSORS = {  # functions of torch._utils
    "_rebuild_sparse_tensor": "sparse",
    "_rebuild_nested_tensor": "nested",
    "_rebuild_meta_tensor_no_storage": "without values",
    "_rebuild_qtensor": "quantized",
}


class UnreadableError(Exception):
    """A file that is none of torch.save's, damaged, or larger in memory than it is; says what, without its name."""


class RefusedNameError(UnreadableError):
    """A file names something that is neither a tensor, a plain container nor part of a network; says its name."""


class StoredObject:
    """An object of a class that only the file knows: its state, and no behavior."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}


class _StoredClass:
    """What makes `StoredObject`."""


class _Function:
    """What a file may call."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call


class Unpickler:
    """Reads a pickle from a place of ``data`` on.

    ``load_storage`` makes a flat tensor of what the pickle says of a storage, ``networks`` lets it hold objects of
    networks' classes, ``expanded`` float32 tensors and integers with more elements than their storage.
    """

    def __init__(
        self,
        data: bytes | mmap.mmap,
        place: int = 0,
        *,
        load_storage: Callable[..., Tensor] | None = None,
        networks: bool = False,
        expanded: bool = False,
    ) -> None:
        self._data, self._start, self.place = data, place, place
        self._load_storage, self._networks, self._expanded = load_storage, networks, expanded
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []  # stacks before each mark
        self._memo: dict[int, Any] = {}
        self._left_to_copy = _MOST_STEPS

    def load(self) -> Any:
        """The value of the pickle; ``place`` is then where it ends."""
        data, steps = self._data, _STEPS
        for _ in range(_MOST_STEPS):
            code = data[self.place]
            self.place += 1
            if code == _STOP:
                return self._stack.pop()
            if code not in steps:
                raise UnreadableError(f"no pickle of torch.save (operation {code})")
            steps[code](self)
        raise UnreadableError(f"a pickle of more than {_MOST_STEPS} steps")

    def _take(self, count: int) -> bytes:
        """The next bytes."""
        end = self.place + count
        if count < 0 or end > len(self._data):
            raise UnreadableError(f"{count} bytes are announced, and are not there")
        if end - self._start > LARGEST_PICKLE:
            raise UnreadableError(f"a pickle of more than {LARGEST_PICKLE} bytes")
        taken = self._data[self.place : end]
        self.place = end
        return taken

    def _number(self, form: struct.Struct) -> Any:
        (number,) = form.unpack_from(self._data, self.place)
        self.place += form.size
        return number

    def _byte(self) -> int:
        self.place += 1
        return self._data[self.place - 1]

    def _line(self) -> str:
        end = self._data.find(b"\n", self.place, self.place + _LONGEST_NAME)
        if end < 0:
            raise UnreadableError("a name without end")
        line = str(self._data[self.place : end], "utf-8")
        self.place = end + 1
        return line

    def _to_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._below.pop()
        return items

    def _mark(self) -> None:
        self._below.append(self._stack)
        self._stack = []

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _text(self, size: int) -> None:
        self._stack.append(str(self._take(size), "utf-8"))

    def _integer(self, size: int) -> None:
        if size > _LARGEST_INTEGER:
            raise UnreadableError(f"an integer of {size} bytes, expected at most {_LARGEST_INTEGER}")
        self._stack.append(int.from_bytes(self._take(size), "little", signed=True))

    def _tuple(self, size: int) -> None:
        items = self._stack[-size:]
        if len(items) < size:
            raise UnreadableError("a tuple of fewer values than it announces")
        self._stack[-size:] = [tuple(items)]

    def _append(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not list:
            raise UnreadableError("values for what is no list")
        target += items

    def _set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise UnreadableError("keys for what is no dict")
        target.update(zip(map(_key, items[::2]), items[1::2]))

    def _add_items(self) -> None:
        items, target = self._to_mark(), self._stack[-1]
        if type(target) is not set:
            raise UnreadableError("values for what is no set")
        target.update(map(_key, items))

    def _pair(self) -> list[Any]:
        """The two topmost values."""
        value = self._stack.pop()
        return [self._stack.pop(), value]

    def _put(self, number: int) -> None:
        if number > self.place - self._start:  # other readers make a list of that many
            raise UnreadableError(f"a pickle that numbers a value {number}")
        self._memo[number] = self._stack[-1]

    def _name(self, module: Any, name: Any) -> None:
        """What stands for a name of the file."""
        if not isinstance(module, str) or not isinstance(name, str) or len(module) + len(name) > _LONGEST_NAME:
            raise UnreadableError("a name that is none")
        module = _RENAMED.get(module, module)
        found: Any = _KNOWN.get(f"{module}.{name}")
        if found is None and module in ("torch", "torch.cuda", "torch.storage"):
            found = _STORAGES.get(name) or _DTYPES.get(name)
        if found is None and self._networks:
            is_network = module.startswith("torch.nn.") or module.partition(".")[0] in _NETWORK_PACKAGES
            found = _STORED_CLASS if is_network else None
        if found is None and module == "torch._utils" and name in _OTHER_TENSORS:
            raise UnreadableError(f"a tensor that is {_OTHER_TENSORS[name]}, expected dense ones of usual numbers")
        if found is None:
            raise RefusedNameError(ascii(f"{module}.{name}")[1:-1])
        self._push(found)

    def _call(self) -> None:
        function, given = self._pair()
        if not isinstance(given, tuple) or len(given) > _MOST_GIVEN:
            raise UnreadableError("a call without values, or with too many")
        if isinstance(function, _StoredClass):
            self._push(StoredObject())
        elif isinstance(function, _Function):
            self._push(function.call(self, *given))
        else:
            raise UnreadableError("a call of what is no function")

    def _build(self) -> None:
        state, target = self._stack.pop(), self._stack[-1]
        if isinstance(target, StoredObject):
            target.state = state if isinstance(state, dict) else {}
        elif isinstance(target, OrderedDict) and isinstance(state, dict):  # a state dict's versions of its modules
            versions = state.get("_metadata")
            found = self.copied(versions).items() if isinstance(versions, dict) else ()
            setattr(target, "_metadata", {key: value for key, value in found if _is_version(key, value)})  # noqa: B010
        else:
            raise UnreadableError("a state for what has none")

    def _storage(self) -> None:
        pid = self._stack.pop()
        if self._load_storage is None or not isinstance(pid, tuple) or not 2 <= len(pid) <= _MOST_GIVEN:
            raise UnreadableError("a reference to what the file does not hold")
        if pid[0] == "module":  # a class that the file keeps with its source, which is not looked at
            self._push(pid[1])
            return
        if pid[0] != "storage" or not isinstance(pid[1], torch.dtype):
            raise RefusedNameError("a reference to neither a storage nor a network's class")
        _, dtype, key, _, count, *view = pid
        if not isinstance(key, str) or type(count) is not int or count < 0:
            raise UnreadableError("a storage without a name or size")
        self._push(self._load_storage(dtype, key, count, *view))

    def copied(self, values: Any) -> Any:
        """The same values, which are about to be copied; there is a limit to how many times."""
        self._left_to_copy -= len(values)
        if self._left_to_copy < 0:
            raise UnreadableError(f"more than {_MOST_STEPS} values copied")
        return values

    def tensor(
        self, storage: Tensor, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *more: Any
    ) -> Tensor:
        """A tensor that lies within its storage."""
        if any(more[2:]):  # after what gradients need: that values stand for their opposites, and the like
            raise UnreadableError("a tensor whose values are not those that are stored")
        if not isinstance(storage, Tensor) or len(size) != len(stride) or len(size) > _LONGEST_SHAPE:
            raise UnreadableError("a tensor without storage or shape")
        numbers = (offset, *size, *stride)
        if any(type(number) is not int or number < 0 for number in numbers):
            raise UnreadableError(f"a tensor of shape {shown(size)}, strides {shown(stride)} and offset {offset}")
        held, count = storage.numel(), math.prod(size)
        if count and offset + sum((n - 1) * step for n, step in zip(size, stride)) >= held:
            raise UnreadableError(f"a tensor of shape {shown(size)} reaches beyond its storage of {held} elements")
        copied = storage.is_floating_point() and storage.dtype != torch.float32  # by those who read weights
        if count > held and (copied or not self._expanded or count > _MOST_EXPANDED):
            raise UnreadableError(
                f"a tensor of shape {shown(size)} in a storage of {held} elements; save its .contiguous()"
            )
        return storage.as_strided(size, stride, offset)

    def tensor_of_bytes(
        self, storage: Tensor, offset: int, size: Any, stride: Any, grad: Any, hooks: Any, dtype: Any, *_: Any
    ) -> Tensor:
        """The same of the types of number that have no storage of their own."""
        if not isinstance(storage, Tensor) or not isinstance(dtype, torch.dtype):
            raise UnreadableError("a tensor without storage or type")
        return self.tensor(storage.view(dtype), offset, size, stride)


def _key(key: Any) -> Any:
    """A key of a dict, or value of a set, whose hash is cheap."""
    if not isinstance(key, str | int | float | bytes | None):
        raise UnreadableError(f"a {type(key).__name__} as a key")
    return key


def _is_version(key: Any, value: Any) -> bool:
    return isinstance(key, str) and isinstance(value, dict) and type(value.get("version")) is int and len(value) == 1


def _device(reader: Unpickler, kind: Any, *index: Any) -> Any:
    return kind  # which nobody asks for


def _ordered(reader: Unpickler, pairs: Any = ()) -> OrderedDict[Any, Any]:
    return OrderedDict((_key(key), value) for key, value in reader.copied(pairs))


def _encoded(reader: Unpickler, text: str, encoding: str) -> bytes:
    return reader.copied(text).encode("latin-1")  # bytes, as Python 3 writes them for Python 2


_STORED_CLASS = _StoredClass()
_KNOWN = {
    "collections.OrderedDict": _Function(_ordered),
    "builtins.set": _Function(lambda reader, values=(): set(map(_key, reader.copied(values)))),
    "torch.Size": _Function(lambda reader, values=(): tuple(reader.copied(values))),
    "torch.device": _Function(_device),
    "_codecs.encode": _Function(_encoded),
    "torch._utils._rebuild_tensor": _Function(Unpickler.tensor),
    "torch._utils._rebuild_tensor_v2": _Function(Unpickler.tensor),
    "torch._utils._rebuild_tensor_v3": _Function(Unpickler.tensor_of_bytes),
    "torch._utils._rebuild_parameter": _Function(lambda reader, data, *_: data),
}

_STOP = ord(".")
# The operations that torch.save writes, by the names of Python's pickletools.
_STEPS: dict[int, Callable[[Unpickler], Any]] = {
    0x80: lambda self: self._take(1),  # PROTO
    0x95: lambda self: self._take(8),  # FRAME
    ord("("): Unpickler._mark,
    ord("N"): lambda self: self._push(None),
    0x88: lambda self: self._push(True),
    0x89: lambda self: self._push(False),
    ord("J"): lambda self: self._push(self._number(_INT32)),
    ord("K"): lambda self: self._push(self._byte()),
    ord("M"): lambda self: self._push(self._number(_UINT16)),
    ord("G"): lambda self: self._push(self._number(_FLOAT64)),
    0x8A: lambda self: self._integer(self._byte()),  # LONG1
    ord("X"): lambda self: self._text(self._number(_UINT32)),
    ord("T"): lambda self: self._text(self._number(_UINT32)),
    ord("U"): lambda self: self._text(self._byte()),
    0x8C: lambda self: self._text(self._byte()),  # SHORT_BINUNICODE
    ord("B"): lambda self: self._push(self._take(self._number(_UINT32))),
    ord("C"): lambda self: self._push(self._take(self._byte())),
    ord("]"): lambda self: self._push([]),
    ord("a"): lambda self: self._append([self._stack.pop()]),
    ord("e"): lambda self: self._append(self._to_mark()),
    ord("}"): lambda self: self._push({}),
    ord("s"): lambda self: self._set_items(self._pair()),
    ord("u"): lambda self: self._set_items(self._to_mark()),
    0x8F: lambda self: self._push(set()),
    0x90: Unpickler._add_items,
    ord(")"): lambda self: self._push(()),
    ord("t"): lambda self: self._push(tuple(self._to_mark())),
    0x85: lambda self: self._tuple(1),
    0x86: lambda self: self._tuple(2),
    0x87: lambda self: self._tuple(3),
    ord("q"): lambda self: self._put(self._byte()),
    ord("r"): lambda self: self._put(self._number(_UINT32)),
    0x94: lambda self: self._put(len(self._memo)),  # MEMOIZE
    ord("h"): lambda self: self._push(self._memo[self._byte()]),
    ord("j"): lambda self: self._push(self._memo[self._number(_UINT32)]),
    ord("c"): lambda self: self._name(self._line(), self._line()),
    0x93: lambda self: self._name(*self._pair()),  # STACK_GLOBAL
    ord("R"): Unpickler._call,
    0x81: Unpickler._call,  # NEWOBJ
    ord("b"): Unpickler._build,
    ord("Q"): Unpickler._storage,
}
