"""What every dataset and batch offers to the training loop."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

B = TypeVar("B", bound="Batch")


@dataclass(frozen=True)
class Batch:
    """Base of a model's batch: named tensors, and the utterances' names for error messages.

    A subclass adds its tensors as fields, and says how many units of work it holds and what it is padded along. What a
    dataset gives are batches of one utterance.
    """

    axes: ClassVar[Mapping[str, Mapping[int, str]]] = {}  # field -> dimension -> what is padded along it: "frames"

    names: tuple[str, ...]  # one an utterance, "wavs/a.wav (train.txt:7)"

    @property
    def frame_lengths(self) -> torch.Tensor:
        """Valid (unpadded) mel frames of each utterance, (B,) int64."""
        raise NotImplementedError

    @property
    def n_frames(self) -> torch.Tensor:
        """Mel frames of all utterances, a scalar int64 tensor; the unit of training throughput."""
        return self.frame_lengths.sum()

    @property
    def n_utterances(self) -> torch.Tensor:
        """Number of utterances, a scalar int64 tensor on the batch's device."""
        return torch.ones_like(self.frame_lengths).sum()

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each axis, with its padding."""
        found: dict[str, int] = {}
        for name, dimensions in self.axes.items():
            if (tensor := getattr(self, name)) is not None:
                found |= {axis: tensor.size(dimension) for dimension, axis in dimensions.items()}
        return found

    def padded(self: B, sizes: Mapping[str, int]) -> B:
        """Pad with zeros at the ends up to ``sizes`` of the axes, none of which is below the batch's own."""
        changed: dict[str, Any] = {}
        for name, dimensions in self.axes.items():
            if (tensor := getattr(self, name)) is not None:
                shape = [sizes.get(dimensions.get(one, ""), size) for one, size in enumerate(tensor.shape)]
                changed[name] = tensor if shape == [*tensor.shape] else _filled([tensor], shape)
        return replace(self, **changed)

    def to(self: B, device: torch.device) -> B:
        """Move every tensor to ``device`` (asynchronously from pinned memory)."""
        return self._with_tensors(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self: B) -> B:
        """Copy the batch to page-locked memory; the data loader calls this when it feeds a GPU."""
        return self._with_tensors(torch.Tensor.pin_memory)

    def _with_tensors(self: B, change: Callable[[torch.Tensor], torch.Tensor]) -> B:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        changed: dict[str, Any] = {
            name: change(value) for name, value in values.items() if isinstance(value, torch.Tensor)
        }
        return replace(self, **changed)


def pad_rows(rows: Sequence[Tensor]) -> Tensor:
    """Tensors of one dtype and number of dimensions as a batch (B, ...), with zeros at their ends up to the largest."""
    sizes = [max(row.size(dimension) for row in rows) for dimension in range(rows[0].dim())]
    return _filled(rows, [len(rows), *sizes])


def join_batches(batches: Sequence[B]) -> B:
    """Batches as one, in their order: tensors zero-padded as by `pad_rows`, tuples one after the other."""
    changed: dict[str, Any] = {}
    for name, value in vars(batches[0]).items():
        values = [getattr(batch, name) for batch in batches]
        if isinstance(value, Tensor):
            changed[name] = pad_rows([row for rows in values for row in rows])
        elif isinstance(value, tuple):
            changed[name] = tuple(chain.from_iterable(values))
    return replace(batches[0], **changed)


def _filled(rows: Sequence[Tensor], shape: Sequence[int]) -> Tensor:
    """Zeros of a ``shape`` with ``rows`` at the beginning of the first; one row may be the batch itself.

    In a loader's process they lie in shared memory at once, from where the training process takes them: elsewhere they
    would be copied into it.
    """
    first = rows[0]
    if get_worker_info() is None:
        batch = torch.zeros(*shape, dtype=first.dtype)
    else:
        n_values = torch.Size(shape).numel()
        # At least a byte; zeros, as new pages are.
        shared = torch.UntypedStorage._new_shared(max(1, n_values) * first.element_size(), device="cpu")
        batch = torch.empty(0, dtype=first.dtype).set_(shared)[:n_values].view(*shape)
    places = [batch] if first.dim() == batch.dim() else batch.unbind()
    for place, row in zip(places, rows):
        place[tuple(map(slice, row.shape))] = row
    return batch


@dataclass(frozen=True)
class Draw:
    """An utterance in one epoch, for datasets that give another part of it each time."""

    index: int
    epoch: int


class Dataset(Protocol):
    """A map-style dataset whose utterances can be compared by length before they are loaded.

    Training takes utterances by ``draw``, in any process and order: what is random in it comes from its two arguments
    and the dataset's seed alone. Validation takes them by ``__getitem__``, always the same.
    """

    lengths: list[int]  # relative lengths, any unit: only their order matters

    def files(self) -> Iterable[tuple[str, Path]]:
        """All files of utterances that are read, each with what names it, as `common.files.check_apart` takes them."""

    def sizes(self) -> dict[str, list[int]]:
        """The most that each utterance has along each axis of its batches, the longest axis first."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Any: ...

    def draw(self, index: int, *, epoch: int) -> Any: ...

    def collate(self, items: list) -> Batch: ...
