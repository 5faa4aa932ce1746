"""Measure how long work takes on a device."""

import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch


@contextmanager
def timed(device: torch.device, seconds: list[float]) -> Iterator[None]:
    """Append the time of the block's work on a device to ``seconds``, not counting earlier work."""
    synchronize = partial(torch.cuda.synchronize, device) if device.type == "cuda" else lambda: None
    synchronize()
    started = time.perf_counter()
    yield
    synchronize()
    seconds.append(time.perf_counter() - started)


def take_turns(ways: Sequence[Callable[[], object]], turns: int) -> list[list[float]]:
    """Time each way in each of ``turns``, alternating, so that other load on the machine affects all alike."""
    return [[timeit.timeit(way, timer=time.perf_counter, number=1) for way in ways] for _ in range(turns)]
