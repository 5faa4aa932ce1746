"""CUDA graphs by shape: the one recorder of the voice, the vocoder and autoregressive decoders on a GPU."""

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from common.synthesis.options import LONGEST_FRAMES

LARGEST_BATCH = 8  # a larger one, or one longer than LONGEST_FRAMES, keeps the GPU busy without a graph
MAX_GRAPHS = 64  # of a recorder; each keeps its own input and output
WARMUP_RUNS = 3  # before recording, so that libraries have chosen their algorithms and made their workspaces

# What launches the recorded work, and the tensor or tuple of tensors that it writes
Recording = tuple[Callable[[], object], Any]


class GraphRecorder:
    """Records work as CUDA graphs on a stream of its own.

    The graphs share one memory pool: run one at a time, and copy what it writes before the next one runs. Free all
    graphs of a recorder together, since PyTorch refuses to reuse a pool of which some graphs are gone. Beyond
    ``MAX_GRAPHS`` graphs, or once a recording has failed, work runs without graphs, after one warning.
    """

    def __init__(self, what: str) -> None:
        """``what`` is the name of the work in warnings."""
        self._what = what
        self._n_graphs = 0
        self._has_failed = False
        self._warnings = set[str]()

    def record(self, work: Callable[[], Any]) -> Recording | None:
        """Record ``work``, which must not wait for the device; None if it has to run without a graph."""
        if self._has_failed:
            return None
        if self._n_graphs == MAX_GRAPHS:
            self._warn(f"batches of more than {MAX_GRAPHS} sizes run without graphs")
            return None
        try:
            recording = self.capture(work)
        except RuntimeError as error:
            self._has_failed = True
            cause = error.__context__ if isinstance(error.__context__, RuntimeError) else error  # of a recording's end
            reason = str(cause).strip().partition("\n")[0]
            self._warn(f"the work cannot be recorded and runs without graphs ({reason})")
            return None
        self._n_graphs += 1
        return recording

    def by_shape(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """``step`` of tensors (or None), run as one graph for each combination of their shapes and dtypes.

        It returns a tensor or a tuple of tensors, which later calls don't change. The first argument is the batch; one
        of more than ``LARGEST_BATCH`` rows, or longer than ``LONGEST_FRAMES``, runs without a graph.
        """
        recordings: dict[tuple, tuple[list[Tensor | None], Recording]] = {}

        def run(batch: Tensor, *others: Tensor | None) -> Any:
            given = (batch, *others)
            # Tensors of inference mode cannot be written outside it.
            key = torch.is_inference_mode_enabled(), *(one if one is None else (one.shape, one.dtype) for one in given)
            if key not in recordings:
                if max(batch.shape) > LONGEST_FRAMES or len(batch) > LARGEST_BATCH:
                    limits = f"{LARGEST_BATCH} phrases or {LONGEST_FRAMES} frames"
                    self._warn(f"batches of more than {limits} run without graphs")
                    return step(*given)
                inputs = [_copied(one) for one in given]
                if (recording := self.record(lambda: step(*inputs))) is None:
                    return step(*given)
                recordings[key] = inputs, recording
            inputs, (replay, made) = recordings[key]
            for own, one in zip(inputs, given):
                if own is not None and one is not None:
                    own.copy_(one)
            replay()
            return tuple(map(_copied, made)) if isinstance(made, tuple) else _copied(made)

        return run

    def capture(self, work: Callable[[], Any]) -> Recording:
        """Run ``work`` a few times, then record it; RuntimeError if it cannot be recorded.

        Other threads may use the device meanwhile.
        """
        if self._n_graphs == 0:
            self._stream, self._pool = torch.cuda.Stream(), torch.cuda.graph_pool_handle()
        generator, before = torch.cuda.default_generators[torch.cuda.current_device()], torch.cuda.current_stream()
        caches = torch.is_autocast_cache_enabled()
        torch.set_autocast_cache_enabled(False)  # cached casts of weights are freed with the context, not the graph
        try:
            self._stream.wait_stream(before)
            with torch.cuda.stream(self._stream):
                for _ in range(WARMUP_RUNS):
                    work()
            before.wait_stream(self._stream)
            graph, drawn = torch.cuda.CUDAGraph(), generator.clone_state()
            try:
                # The outer context restores the stream where the inner one fails to.
                with (
                    torch.cuda.stream(before),
                    torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"),
                ):
                    return graph.replay, work()
            except BaseException:
                generator.graphsafe_set_state(drawn)  # else it stays in the state of a recording
                raise
        finally:
            torch.set_autocast_cache_enabled(caches)

    def _warn(self, line: str) -> None:
        """Print a warning, once."""
        if line not in self._warnings:
            print(f"warning: {self._what}: {line}", file=sys.stderr)
        self._warnings.add(line)


def _copied(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.clone()
