"""How long work takes on a device."""

import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch


@contextmanager
def timed(device: torch.device, seconds: list[float]) -> Iterator[None]:
    """Append the time of the block's work on a device to ``seconds``, from the end of earlier work to that of this."""
    synchronize = partial(torch.cuda.synchronize, device) if device.type == "cuda" else lambda: None
    synchronize()
    started = time.perf_counter()
    yield
    synchronize()
    seconds.append(time.perf_counter() - started)


def take_turns(ways: Sequence[Callable[[], object]], turns: int) -> list[list[float]]:
    """Seconds of each way in each of ``turns``, one way after the other, so that a load on the machine slows all."""
    return [[timeit.timeit(way, timer=time.perf_counter, number=1) for way in ways] for _ in range(turns)]
