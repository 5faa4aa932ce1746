"""What every dataset and batch offers to the training loop."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, TypeVar

import torch

from common.errors import InputError

B = TypeVar("B", bound="Batch")


@dataclass(frozen=True)
class Batch:
    """Base of a model's batch: named tensors, and the utterances' names for error messages.

    A subclass adds its tensors as fields and says how many units of work it holds.
    """

    names: tuple[str, ...]  # one an utterance, "wavs/a.wav (train.txt:7)"

    @property
    def n_frames(self) -> torch.Tensor:
        """Valid (unpadded) mel frames of the batch, a scalar int64 tensor; the unit of training throughput."""
        raise NotImplementedError

    def to(self: B, device: torch.device) -> B:
        """The same batch with every tensor on ``device`` (asynchronously from pinned memory)."""
        return self._with_tensors(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self: B) -> B:
        """The same batch in page-locked memory; the data loader calls this when it feeds a GPU."""
        return self._with_tensors(torch.Tensor.pin_memory)

    def _with_tensors(self: B, change: Callable[[torch.Tensor], torch.Tensor]) -> B:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        changed: dict[str, Any] = {
            name: change(value) for name, value in values.items() if isinstance(value, torch.Tensor)
        }
        return replace(self, **changed)


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

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Any: ...

    def draw(self, index: int, *, epoch: int) -> Any: ...

    def collate(self, items: list) -> Batch: ...


class ErrorsAsItems:
    """A dataset that gives user errors as items, to be raised in the main process, where they are one line.

    The loader would otherwise raise them with the worker's traceback in their text.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: int | Draw) -> object:
        try:
            if isinstance(index, Draw):
                return self._dataset.draw(index.index, epoch=index.epoch)
            return self._dataset[index]
        except InputError as error:
            return error

    def collate(self, items: list) -> Batch | InputError:
        """The dataset's batch, or the first error among its items."""
        for item in items:
            if isinstance(item, InputError):
                return item
        return self._dataset.collate(items)
