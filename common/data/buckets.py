"""Length buckets: batches are padded up to a few shapes, so that code is compiled for these alone."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from common.data.batch import Dataset

_MULTIPLE = 8  # of lengths, as matrix products in half precision are fastest
_BEYOND = 64  # of lengths beyond the largest shape, which a random draw of phones may reach

AxisSizes = Mapping[str, int]  # of a batch, with its padding: {"frames": 400, "tokens": 64}


@dataclass(frozen=True)
class Longest:
    """The most that utterances of a training have."""

    frames: int
    symbols: int


def choose_shapes(sizes: Sequence[Mapping[str, Sequence[int]]], n_shapes: int) -> list[dict[str, int]]:
    """At most ``n_shapes`` shapes, each at least the one before, that lists of utterances fit into.

    ``sizes`` are those of `Dataset.sizes` for training, then validation. Along the first axis the shapes are quantiles
    of training's, so that as many utterances fall into each; along the others they hold what may come with it.
    """
    axis, *others = sizes[0]
    ordered = sorted(sizes[0][axis])
    limits = [ordered[-(-len(ordered) * (part + 1) // n_shapes) - 1] for part in range(n_shapes)]
    limits[-1] = max(max(one[axis]) for one in sizes)
    utterances = [row for one in sizes for row in zip(*(one[name] for name in (axis, *others)), strict=True)]
    utterances.sort()
    shapes: list[dict[str, int]] = []
    for limit in sorted(set(limits)):
        within = utterances[: bisect_left(utterances, (limit + 1,))]
        shape = {name: _up(max(values), _MULTIPLE) for name, values in zip((axis, *others), zip(*within))}
        if shape not in shapes:
            shapes.append(shape)
    return shapes


def shape_of(sizes: AxisSizes, shapes: Sequence[AxisSizes]) -> AxisSizes:
    """The first of ``shapes`` that ``sizes`` fit into; where none is, the next multiples."""
    for shape in shapes:
        if all(size <= shape[axis] for axis, size in sizes.items()):
            return shape
    return {axis: max(shapes[-1][axis], _up(size, _BEYOND)) for axis, size in sizes.items()}


def shapes_for(datasets: "Iterable[Dataset]", n_shapes: int) -> tuple[list[dict[str, int]], list[str]]:
    """At most ``n_shapes`` shapes for batches of training, then validation, and a line that says so; 0: none."""
    if n_shapes == 0:
        return [], []
    shapes = choose_shapes([one.sizes() for one in datasets], n_shapes)
    listed = ", ".join(" x ".join(map(str, shape.values())) for shape in shapes)
    return shapes, [f"batches are padded to {len(shapes)} lengths ({' x '.join(shapes[0])}): {listed}"]


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
