"""Processes that share the work on a corpus."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from common.data import build_loader, raise_errors

T = TypeVar("T")

CHUNK = 16  # utterances a task at most: a task takes most of a second, a kill loses no more than that
CHUNKS_PER_WORKER = 4  # at least, so that no worker waits long for the last


@dataclass(frozen=True)
class _Results:
    """``function(item)`` of each item, as a dataset whose batches are lists."""

    function: Callable[[Any], Any]
    items: Sequence[Any]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.function(self.items[index])

    def collate(self, results: list) -> list:
        """The results as they are."""
        return results


def map_in_processes(function: Callable[[Any], T], items: Sequence[Any], *, n_workers: int) -> Iterator[T]:
    """``function(item)`` of every item, in their order, by so many processes with one torch thread each.

    With one, the work is done in this process. An InputError of the function ends it.
    """
    if n_workers == 1:
        torch.set_num_threads(1)  # the same sums in the same order, whatever the number of workers
    size = max(1, min(CHUNK, math.ceil(len(items) / (n_workers * CHUNKS_PER_WORKER))))
    chunks = [range(start, min(start + size, len(items))) for start in range(0, len(items), size)]
    results: Any = _Results(function, items)
    loader = build_loader(results, chunks, n_workers=n_workers if n_workers > 1 else 0, pin_memory=False, seed=0)
    for chunk in raise_errors(loader):
        yield from chunk  # type: ignore[misc]  # a list, not a training batch
