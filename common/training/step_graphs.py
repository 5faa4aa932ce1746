"""Whole updates recorded as CUDA graphs, one for the shapes of their batches: thousands of kernels launched as one.

What is recorded reads and writes the same tensors each time, and no number of the host that may change: batches are
copied into tensors of their own, and learning rates, weights of losses and what the processes ask for are tensors too.
What is made while it is recorded lies in its memory: but for the figures, nothing of it is kept. Elsewhere than on a
GPU the same code runs without being recorded.
"""

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import torch
from torch import Tensor

from common.data import Batch

MAX_GRAPHS = 32  # each keeps its own inputs
WARMUP_UPDATES = 3  # of a shape before it is recorded: optimizers have their states, libraries their algorithms

Figure = tuple[str, str]  # what it is ("term", "grad_norm", "finite" or "step"), and its name
Figures = dict[Figure, Tensor]  # float64 scalars on the device
PhaseWeights = Mapping[str, float | Tensor]  # of a phase's loss terms; tensors are float32 scalars
Weights = Mapping[str, PhaseWeights]
Update = Callable[[Sequence[Batch], Weights], Figures]
T = TypeVar("T")


class GraphRecorder:
    """Records work as CUDA graphs on a stream of its own.

    They share their memory, so that only one of them may run at a time, and what one writes is to be read before the
    next runs. A recorder is thrown away with all of its graphs, never with some of them: PyTorch frees workspaces of a
    graph's stream with the graph, and refuses memory whose graphs have gone while anything else is still in it.
    """

    def __init__(self) -> None:
        self._stream = torch.cuda.Stream()
        self._pool = torch.cuda.graph_pool_handle()

    def run(self, work: Callable[[], T]) -> T:
        """Run ``work`` without recording it, so that libraries choose algorithms and make workspaces for the stream."""
        before = torch.cuda.current_stream()
        self._stream.wait_stream(before)
        with torch.cuda.stream(self._stream):
            result = work()
        before.wait_stream(self._stream)
        return result

    def record(self, work: Callable[[], T]) -> tuple[Callable[[], object], T]:
        """Record ``work``, which must not wait for the device; returns its replay, and what that writes.

        Other threads, such as the one that pins batches, may use the device meanwhile. RuntimeError where the work
        cannot be recorded: nothing of it has run then, and random numbers continue as if it had not been tried.
        """
        graph, generator = torch.cuda.CUDAGraph(), torch.cuda.default_generators[torch.cuda.current_device()]
        drawn = generator.clone_state()
        try:
            # The outer context leaves the stream where the inner one fails to.
            with (
                torch.cuda.stream(torch.cuda.current_stream()),
                torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"),
            ):
                result = work()
        except BaseException:
            generator.graphsafe_set_state(drawn)  # the state of before would still be that of a recording
            raise
        return graph.replay, result


class NoRecorder:
    """Runs work without recording it; stands in for `GraphRecorder` on devices without CUDA graphs."""

    def run(self, work: Callable[[], T]) -> T:
        """Run ``work``."""
        return work()

    def record(self, work: Callable[[], Figures]) -> tuple[Callable[[], object], Figures]:
        """Return what runs ``work`` again, and the figures that it writes."""
        figures: Figures = {}
        return lambda: figures.update(work()), figures


def warn_of_failure(what: str, error: RuntimeError) -> None:
    """Say in one line that ``what`` runs without graphs, as recording it raised ``error``."""
    cause = error.__context__ if isinstance(error.__context__, RuntimeError) else error  # of a recording's end
    reason = str(cause).strip().partition("\n")[0]
    print(f"warning: {what} cannot be recorded and runs without graphs ({reason})", file=sys.stderr)


class RecordedUpdates:
    """Runs ``update`` as recorded work from the fourth time that the shapes of its batches occur.

    What is recorded depends on the tensors that it reads, to which the weights of the losses belong. Shapes beyond the
    first ``MAX_GRAPHS`` run as they are, and so does everything once recording has failed, each with a warning.
    """

    def __init__(self, update: Update, device: torch.device, *, forget: Callable[[], None]) -> None:
        """``forget`` undoes what the host keeps of an update that was launched in part, of which nothing has run."""
        self.recording = False  # whether work is being recorded now
        self._update, self._forget, self._device = update, forget, device
        self._recorder: GraphRecorder | NoRecorder | None  # None: recording has failed
        self._recorder = GraphRecorder() if device.type == "cuda" else NoRecorder()
        self._weights: dict[tuple[str, str], Tensor] = {}
        self._seen: Counter[tuple] = Counter()
        self._replays: dict[tuple, Callable[[Sequence[Batch]], Figures]] = {}

    def __call__(self, micro_batches: Sequence[Batch], weights: Weights) -> Figures:
        """Run an update; the next one writes the same figures."""
        weights = self._on_device(weights)
        key = (*(tuple(terms) for terms in weights.values()), *(_shape(batch) for batch in micro_batches))
        self._seen[key] += 1
        if key not in self._replays and self._seen[key] > WARMUP_UPDATES and len(self._replays) < MAX_GRAPHS:
            self._record(key, micro_batches, weights)
        if key in self._replays:
            return self._replays[key](micro_batches)
        if self._recorder is None:
            return self._update(micro_batches, weights)
        return self._recorder.run(lambda: self._update(micro_batches, weights))

    def _on_device(self, weights: Weights) -> Weights:
        """The weights in tensors that stay where they are, as recorded work reads them there."""
        found: dict[str, dict[str, Tensor]] = {}
        for phase, terms in weights.items():
            for term, weight in terms.items():
                if (phase, term) not in self._weights:
                    self._weights[phase, term] = torch.zeros((), device=self._device)
                found.setdefault(phase, {})[term] = self._weights[phase, term].fill_(weight)
        return found

    def _record(self, key: tuple, micro_batches: Sequence[Batch], weights: Weights) -> None:
        """Record an update, so that ``_replays`` runs it on other batches of these shapes; or warn that it fails."""
        if self._recorder is None:
            return
        own = [batch._with_tensors(torch.clone) for batch in micro_batches]
        self.recording = True
        try:
            replay, figures = self._recorder.record(lambda: self._update(own, weights))
        except RuntimeError as error:
            warn_of_failure("--cuda-graphs: training", error)
            self._recorder = None
            self._replays.clear()
            self._forget()
            return
        finally:
            self.recording = False

        def run(micro_batches: Sequence[Batch]) -> Figures:
            for source, target in zip(micro_batches, own):
                for value, tensor in zip(_values(source), _values(target)):
                    if isinstance(tensor, Tensor):
                        tensor.copy_(value, non_blocking=True)
            replay()
            return figures

        self._replays[key] = run
        if len(self._replays) == MAX_GRAPHS:
            full = f"{MAX_GRAPHS} shapes are recorded; others run without graphs"
            print(f"warning: --cuda-graphs: {full}", file=sys.stderr)


def _values(batch: Batch) -> list[Any]:
    return [getattr(batch, field.name) for field in fields(batch)]


def _shape(batch: Batch) -> tuple:
    """What batches that one graph serves have in common: all but the tensors' values and what utterances are called."""
    return tuple(
        (value.shape, value.dtype) if isinstance(value, Tensor) else len(value) if isinstance(value, tuple) else value
        for value in _values(batch)
    )
