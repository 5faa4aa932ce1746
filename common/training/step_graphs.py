"""Whole updates recorded as CUDA graphs, one for the shapes of their batches: thousands of kernels launched as one.

What is recorded reads and writes the same tensors each time, and no number of the host that may change: batches are
copied into tensors of their own, and learning rates and what the processes ask for are tensors too. Elsewhere than on a
GPU the same code runs without being recorded.
"""

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import torch
from torch import Tensor

from common.data import Batch

MAX_GRAPHS = 32  # each keeps its own inputs
WARMUP_UPDATES = 3  # of a shape before it is recorded: optimizers have their states, libraries their algorithms

Figure = tuple[str, str]  # what it is ("term", "grad_norm", "finite" or "step"), and its name
Figures = dict[Figure, Tensor]  # float64 scalars on the device
Weights = Mapping[str, Mapping[str, float]]  # of losses, by phase and term
Update = Callable[[Sequence[Batch], Weights], Figures]
Work = Callable[[], Figures]
Recorded = tuple[Callable[[], object], Figures]  # a work's replay, and the figures that it writes


def record(work: Work, *, pool: Any) -> Recorded:
    """Record ``work``, which must not wait for the device, as a CUDA graph with its memory in ``pool``; not run yet."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        figures = work()
    return graph.replay, figures


def repeat(work: Work) -> Recorded:
    """Run work without recording it; stands in for `record` on devices without CUDA graphs."""
    figures: Figures = {}
    return lambda: figures.update(work()), figures


class RecordedUpdates:
    """Runs ``update`` as recorded work from the fourth time that the shapes of its batches occur.

    It depends on the tensors that it reads and on the weights of the losses, which are recorded with it. Shapes beyond
    the first ``MAX_GRAPHS`` run as they are, with a warning.
    """

    def __init__(self, update: Update, device: torch.device) -> None:
        self.recording = False  # whether work is being recorded now
        self._update = update
        self._record: Callable[[Work], Recorded] = repeat
        if device.type == "cuda":  # graphs share their memory, since only one of them runs at a time
            self._record = partial(record, pool=torch.cuda.graph_pool_handle())
        self._weights: Weights = {}
        self._seen: Counter[tuple] = Counter()
        self._replays: dict[tuple, Callable[[Sequence[Batch]], Figures]] = {}

    def __call__(self, micro_batches: Sequence[Batch], weights: Weights) -> Figures:
        """Run an update; the next one writes the same figures."""
        if weights != self._weights:
            self._replays.clear()  # these hold the numbers of before
            self._weights = weights
        key = tuple(_shape(batch) for batch in micro_batches)
        self._seen[key] += 1
        if key not in self._replays:
            if self._seen[key] <= WARMUP_UPDATES or len(self._replays) == MAX_GRAPHS:
                return self._update(micro_batches, weights)
            self._replays[key] = self._recorded(micro_batches)
            if len(self._replays) == MAX_GRAPHS:
                full = f"{MAX_GRAPHS} shapes are recorded; others run without graphs"
                print(f"warning: --cuda-graphs: {full}", file=sys.stderr)
        return self._replays[key](micro_batches)

    def _recorded(self, micro_batches: Sequence[Batch]) -> Callable[[Sequence[Batch]], Figures]:
        """Record an update; what is returned runs it on other batches of these shapes."""
        own = [batch._with_tensors(torch.clone) for batch in micro_batches]
        weights = self._weights
        self.recording = True
        replay, figures = self._record(lambda: self._update(own, weights))
        self.recording = False

        def run(micro_batches: Sequence[Batch]) -> Figures:
            for source, target in zip(micro_batches, own):
                for value, tensor in zip(_values(source), _values(target)):
                    if isinstance(tensor, Tensor):
                        tensor.copy_(value, non_blocking=True)
            replay()
            return figures

        return run


def _values(batch: Batch) -> list[Any]:
    return [getattr(batch, field.name) for field in fields(batch)]


def _shape(batch: Batch) -> tuple:
    """What batches that one graph serves have in common: all but the tensors' values and what utterances are called."""
    return tuple(
        (value.shape, value.dtype) if isinstance(value, Tensor) else len(value) if isinstance(value, tuple) else value
        for value in _values(batch)
    )
