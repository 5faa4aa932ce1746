"""Base classes of datasets and batches, for the training loop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

B = TypeVar("B", bound="Batch")


@dataclass(frozen=True)
class Batch:
    """Base class of a model's batch: named tensors, and the utterances' names for error messages.

    A subclass adds tensors as fields and implements `frame_lengths`. Datasets return batches of one utterance.
    """

    names: tuple[str, ...]  # one per utterance, "wavs/a.wav (train.txt:7)"

    @property
    def frame_lengths(self) -> Tensor:
        """Number of valid (unpadded) mel frames of each utterance, (B,) int64."""
        raise NotImplementedError

    @property
    def n_frames(self) -> Tensor:
        """Total number of mel frames, a scalar int64 tensor; the unit of training throughput."""
        return self.frame_lengths.sum()

    @property
    def n_utterances(self) -> torch.Tensor:
        """Number of utterances, a scalar int64 tensor on the batch's device."""
        return torch.ones_like(self.frame_lengths).sum()

    def to(self: B, device: torch.device) -> B:
        """Move every tensor to ``device`` (asynchronously from pinned memory)."""
        return self._with_tensors(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self: B) -> B:
        """Copy the batch to page-locked memory; the data loader calls this when it feeds a GPU."""
        return self._with_tensors(Tensor.pin_memory)

    def _with_tensors(self: B, change: Callable[[Tensor], Tensor]) -> B:
        changed: dict[str, Any] = {name: change(one) for name, one in vars(self).items() if isinstance(one, Tensor)}
        return replace(self, **changed)


def pad_rows(rows: Sequence[Tensor]) -> Tensor:
    """Stack tensors of one dtype and number of dimensions as a batch (B, ...), zero-padded to the largest size.

    A loader process writes directly to shared memory, so that the training process needs no copy.
    """
    first = rows[0]
    shape = torch.Size((len(rows), *(max(row.size(axis) for row in rows) for axis in range(first.dim()))))
    if get_worker_info() is None:
        batch = torch.zeros(shape, dtype=first.dtype)
    else:
        n_bytes = max(1, shape.numel() * first.element_size())
        shared = torch.UntypedStorage._new_shared(n_bytes, device="cpu")  # new pages hold zeros
        batch = torch.empty(0, dtype=first.dtype).set_(shared)[: shape.numel()].view(shape)
    for place, row in zip(batch.unbind(), rows):
        place[tuple(map(slice, row.shape))] = row
    return batch


def join_batches(batches: Sequence[B]) -> B:
    """Join batches in order: tensors are padded by `pad_rows`, tuples concatenated."""
    changed: dict[str, Any] = {}
    for name, value in vars(batches[0]).items():
        values = [getattr(batch, name) for batch in batches]
        if isinstance(value, Tensor):
            changed[name] = pad_rows([row for rows in values for row in rows])
        elif isinstance(value, tuple):
            changed[name] = tuple(chain.from_iterable(values))
    return replace(batches[0], **changed)


@dataclass(frozen=True)
class Longest:
    """The sizes of the longest training utterances."""

    frames: int
    symbols: int


@dataclass(frozen=True)
class Draw:
    """An utterance in an epoch, for datasets that return a different part of it each time."""

    index: int
    epoch: int


class Dataset(Protocol):
    """A map-style dataset that knows relative lengths before utterances are loaded.

    Training calls ``draw`` in any process and order, so its randomness depends only on its arguments and the dataset's
    seed. Validation calls ``__getitem__``, which always returns the same item.
    """

    lengths: list[int]  # relative lengths in any unit; only their order matters

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Any: ...

    def draw(self, index: int, *, epoch: int) -> Any: ...

    def collate(self, items: list) -> Batch: ...
