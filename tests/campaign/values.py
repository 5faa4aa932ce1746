"""Wrong values for places in trees of plain types, as JSON, YAML and requests hold them, and changes of bytes."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

Place = tuple[Any, ...]  # keys and indices from the root

PLAIN: dict[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "minus one": -1,
    "ten million": 10**7,
    "a half": 0.5,
    "empty string": "",
    "a word": "x",
    "digits in a string": "22050",
    "a path": "/dev/zero",
    "path of a parent": "../../../etc/passwd",
    "empty list": [],
    "list of null": [None],
    "list of lists": [[1, 2], [3]],
    "empty dict": {},
    "a dict": {"a": 1},
}


@dataclass(frozen=True)
class Mutation:
    """Another value at a place of a tree, or no value there, or one more."""

    place: Place
    name: str  # of `PLAIN`, or "absent", or "one more key"
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
        if not self.place:
            return True
        if original is None or self.value is None or original in ([], {}):
            return False
        groups = ((bool,), (int, float), (str,), (list,), (dict,))
        kinds = [next(n for n, kinds in enumerate(groups) if isinstance(one, kinds)) for one in (original, self.value)]
        return kinds[0] != kinds[1] or (isinstance(original, int) and isinstance(self.value, float))


def places_of(tree: Any, place: Place = ()) -> Iterator[Place]:
    """Every place of a tree; of long lists only the first ones."""
    yield place
    items = tree.items() if isinstance(tree, dict) else enumerate(tree[:2]) if isinstance(tree, list) else ()
    for key, value in items:
        yield from places_of(value, (*place, key))


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


def at(tree: Any, place: Place) -> Any:
    """What is at a place of a tree."""
    for key in place:
        tree = tree[key]
    return tree


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
    "PNG": lambda data: b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + data,
    "gzip": lambda data: b"\x1f\x8b\x08\0" + data,
    "zero bytes": lambda data: bytes(4096),
}
_INSERTED = {
    "a zero byte": b"\0",
    "an escape": b"\x1b[31m",
    "an invalid byte": b"\xff",
    "a line break": b"\n",
    "a bar": b"|",
}
text_mutations = st.builds(
    TextMutation,
    st.sampled_from([*_WHOLE, *_INSERTED, "truncated", "truncated", "bit flipped"]),
    st.integers(0, 999).map(lambda number: number / 1000),
)


def write_file(path: Path, data: bytes | str) -> None:
    """Write it, making the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))
