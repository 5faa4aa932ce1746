"""How long work takes on a device."""

import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch


class Stopwatch:
    """Seconds of work on a device: starts when earlier work is done and stops when this work is."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Add the time of the block to ``seconds``."""
        self._synchronize()
        started = time.perf_counter()
        yield
        self._synchronize()
        self.seconds += time.perf_counter() - started

    def _synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def take_turns(ways: Sequence[Callable[[], object]], turns: int) -> list[list[float]]:
    """Seconds of each way in each of ``turns``, one way after the other, so that a load on the machine slows all."""
    return [[timeit.timeit(way, number=1) for way in ways] for _ in range(turns)]
