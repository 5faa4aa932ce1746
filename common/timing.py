"""Measure how long work takes on a device."""

import time
from collections.abc import Iterator
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
