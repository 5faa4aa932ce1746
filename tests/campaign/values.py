"""Wrong values for places in trees of plain types, as JSON, YAML and checkpoints hold them."""

import json
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

Place = tuple[Any, ...]  # keys and indices from the root

PLAIN: dict[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "minus one": -1,
    "minus three": -3,
    "ten million": 10**7,
    "10 ** 10": 10**10,
    "2 ** 63": 2**63,
    "a half": 0.5,
    "1e300": 1e300,
    "1e-300": 1e-300,
    "NaN": math.nan,
    "infinity": math.inf,
    "minus infinity": -math.inf,
    "empty string": "",
    "a word": "x",
    "digits in a string": "22050",
    "escape": "\x1b[31mred\x07",
    "zero byte": "a\0b",
    "C1 control": "\x9b31m",
    "line break": "one\ntwo\rthree",
    "right to left": "a\u202eb",
    "long string": "long " * 40_000,
    "a path": "/dev/zero",
    "path of a parent": "../../../etc/passwd",
    "empty list": [],
    "list of null": [None],
    "long list": [1] * 100_000,
    "list of lists": [[1, 2], [3]],
    "empty dict": {},
    "a dict": {"a": 1},
}
DEEP = "deep"
BIG = "number of 5,000 digits"


@dataclass(frozen=True)
class Mutation:
    """Another value at a place of a tree, or no value there, or one more."""

    place: Place
    name: str  # of `PLAIN` or `TENSORS`, or "absent", or "one more key"
    value: Any = None

    @property
    def label(self) -> str:
        """The place and what it gets."""
        return f"{'.'.join(map(str, self.place)) or 'the root'}: {self.name}"

    def applied(self, tree: Any) -> Any:
        """The mutated tree; the other's containers are not changed."""
        return _changed(tree, self.place, self)

    def is_wrong(self, tree: Any) -> bool:
        """Whether a value of its type cannot be right there, judged by the value that is replaced."""
        original = at(tree, self.place)
        if self.name in ("absent", "one more key"):
            return False
        if not self.place or isinstance(original, Tensor):
            return True
        if original is None or self.value is None or original in ([], {}):
            return False
        if isinstance(self.value, float) and math.isnan(self.value):
            return True
        groups = ((bool,), (int, float), (str,), (list, tuple), (dict,), (Tensor,))
        kinds = [
            next((n for n, kinds in enumerate(groups) if isinstance(one, kinds)), -1) for one in (original, self.value)
        ]
        if isinstance(original, int) and isinstance(self.value, float):
            return not self.value.is_integer()
        return kinds[0] != kinds[1]


def places_of(tree: Any, *, most_tensors: int = 2, place: Place = ()) -> Iterator[Place]:
    """Every place of a tree; of the tensors and of long lists side by side only the first ones."""
    yield place
    if isinstance(tree, dict):
        tensors = 0
        for key, value in tree.items():
            tensors += isinstance(value, Tensor)
            if not isinstance(value, Tensor) or tensors <= most_tensors:
                yield from places_of(value, most_tensors=most_tensors, place=(*place, key))
    elif isinstance(tree, list | tuple):
        for index, value in enumerate(tree[:2]):
            yield from places_of(value, most_tensors=most_tensors, place=(*place, index))


def _changed(tree: Any, place: Place, mutation: Mutation) -> Any:
    if not place:
        if mutation.name == "one more key" and isinstance(tree, dict):
            return {**tree, "one_more": 1}
        return mutation.value
    key, *rest = place
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    if mutation.name == "absent" and not rest:
        del copy[key]
    else:
        copy[key] = _changed(tree[key], tuple(rest), mutation)
    return copy


@st.composite
def mutations(draw: st.DrawFn, places: list[Place], values: dict[str, Any]) -> Mutation:
    """A place, and what it gets."""
    place = draw(st.sampled_from(places))
    name = draw(st.sampled_from([*values, "absent", "one more key"]))
    if name == "absent" and not place:
        name = "one more key"
    return Mutation(place, name, values.get(name))


def _spoilt(tensor: Tensor) -> Tensor:
    copy = tensor.clone()
    copy.view(-1)[:1] = math.nan if copy.is_floating_point() else -1
    return copy


# Other values of the same type, which may not go with the rest of a tree.
_VARIATIONS: dict[type, dict[str, Callable[[Any], Any]]] = {
    Tensor: {
        "a row less": lambda value: value[:-1] if value.dim() else value.new_zeros(0),
        "a row more": lambda value: torch.cat([value, value[:1]]) if value.dim() else value.repeat(2),
        "whole numbers": lambda value: value.long(),
        "one value spoilt": _spoilt,
        "negated": lambda value: -1 - value,
        "enlarged": lambda value: value * 1e30,
    },
    dict: {
        "an entry less": lambda value: dict(list(value.items())[:-1]),
        "another entry": lambda value: {**value, "one_more": next(iter(value.values()), 1)},
        "renamed": lambda value: {f"{key}_": one for key, one in value.items()},
        "reversed": lambda value: dict(reversed(value.items())),
    },
    list: {"twice": lambda value: value * 2, "an item less": lambda value: value[:-1], "reversed": lambda v: v[::-1]},
    int: {
        "one more": lambda v: v + 1,
        "one less": lambda v: v - 1,
        "doubled": lambda v: 2 * v,
        "many": lambda v: v + 999,
    },
    float: {"tiny": lambda value: 1e-30, "negated": lambda value: -1 - value, "large": lambda value: 1e9 * (1 + value)},
    str: {"cut": lambda value: value[:-1], "twice": lambda value: value * 2},
}


@st.composite
def variations(draw: st.DrawFn, places: list[Place], tree: Any) -> Mutation:
    """A place, and another value of its type there."""
    place = draw(st.sampled_from(places))
    original = at(tree, place)
    kind = next((kind for kind in _VARIATIONS if isinstance(original, kind) and not isinstance(original, bool)), None)
    if kind is None:
        return Mutation(place, "one more key", None)
    name = draw(st.sampled_from(list(_VARIATIONS[kind])))
    return Mutation(place, name, _VARIATIONS[kind][name](original))


def at(tree: Any, place: Place) -> Any:
    """What is at a place of a tree."""
    for key in place:
        tree = tree[key]
    return tree


@cache
def tensors() -> dict[str, Any]:
    """Tensors that no network and no feature file has, and what is no tensor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of kinds of tensors that are new or old
        return _tensors()


def _tensors() -> dict[str, Any]:
    matrix = torch.ones(16, 20)
    return {
        "float64": matrix.double(),
        "float64 that overflows float32": matrix.double() * 1e300,
        "float16": matrix.half(),
        "complex": matrix.to(torch.complex64),
        "bool": matrix.bool(),
        "uint8": matrix.to(torch.uint8),
        "uint64": matrix.to(torch.uint64),
        "int64": matrix.long(),
        "float8": matrix.to(torch.float8_e4m3fn),
        "sparse": matrix.to_sparse(),
        "CSR": matrix.to_sparse_csr(),
        "meta": torch.empty(16, 20, device="meta"),
        "quantized": torch.quantize_per_tensor(matrix, 0.1, 0, torch.qint8),
        "NaN tensor": matrix * math.nan,
        "infinite tensor": matrix * math.inf,
        "no dimension": torch.tensor(1.0),
        "one dimension": torch.ones(7),
        "three dimensions": torch.ones(1, 16, 20),
        "no elements": torch.empty(0),
        "no frames": torch.empty(16, 0),
        "transposed": matrix.t(),
        "parameter": torch.nn.Parameter(matrix),
        "requires gradient": matrix.clone().requires_grad_(),
        "list of tensors": [matrix],
        "dict of tensors": {"a": matrix},
        "negative numbers": -matrix.long(),
        "conjugate": matrix.to(torch.complex64).conj(),
        "negative view": torch._neg_view(matrix),
    }


@dataclass(frozen=True)
class TextMutation:
    """A change of a file's bytes."""

    name: str
    at: float = 0.0  # part of the file before it

    @property
    def label(self) -> str:
        """What is changed."""
        return self.name if self.name in _WHOLE else f"{self.name} at {self.at:.3f}"

    def applied(self, data: bytes) -> bytes:
        """The changed bytes."""
        place = round(self.at * len(data))
        if self.name in _WHOLE:
            return _WHOLE[self.name](data)
        if self.name == "truncated":
            return data[:place]
        if self.name == "bit flipped":
            place = min(place, len(data) - 1)
            return data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]
        return data[:place] + _INSERTED[self.name] + data[place:]


_WHOLE = {
    "empty file": lambda data: b"",
    "only spaces": lambda data: b" \n\t\n" * 5,
    "UTF-16": lambda data: data.decode("utf-8", "replace").encode("utf-16"),
    "UTF-16 without mark": lambda data: data.decode("utf-8", "replace").encode("utf-16-le"),
    "UTF-32": lambda data: data.decode("utf-8", "replace").encode("utf-32"),
    "PNG": lambda data: b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + data,
    "gzip": lambda data: b"\x1f\x8b\x08\0" + data,
    "twice": lambda data: data + data,
    "zero bytes": lambda data: bytes(4096),
    "0xFF bytes": lambda data: b"\xff" * 4096,
    "one long line": lambda data: b"a" * 2_000_000,
    "megabytes of line breaks": lambda data: b"\n" * 3_000_000,
}
_INSERTED = {
    "a zero byte": b"\0",
    "an escape": b"\x1b[31m",
    "a bell": b"\x07",
    "an invalid byte": b"\xff",
    "a C1 control": "\x9b".encode(),
    "a line break": b"\n",
    "a tab": b"\t",
    "a quote": b'"',
    "a bar": b"|",
    "a brace": b"{",
    "a number": b"9" * 5000,
    "a surrogate": b"\xed\xa0\x80",
}
text_mutations = st.builds(
    TextMutation,
    st.sampled_from([*_WHOLE, *_INSERTED, "truncated", "truncated", "bit flipped"]),
    st.integers(0, 999).map(lambda number: number / 1000),
)


def json_text(tree: Any) -> str:
    """JSON as Python writes it, which a mutated tree may make unreadable."""
    return json.dumps(tree)


def deep_json(tree: Any, place: Place, what: str) -> str:
    """JSON with a list 100,000 deep, or a number of 5,000 digits, at a place."""
    mark = "@@@"
    value = "[" * 100_000 + "]" * 100_000 if what == DEEP else "9" * 5000
    return json.dumps(Mutation(place, "mark", mark).applied(tree)).replace(f'"{mark}"', value)


def write_file(path: Path, data: bytes | str) -> None:
    """Write it, making the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))
