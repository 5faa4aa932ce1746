"""CUDA graphs by shape: a recorder for the voice, the vocoder and autoregressive decoders on a GPU."""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from common.errors import reason

SYMBOL_STEP, FRAME_STEP = 16, 64  # texts and mels are padded to multiples of these, so that few shapes are recorded
MAX_GRAPHS = 64  # per recorder; each graph keeps its own input and output
WARMUP_RUNS = 3  # before recording, so that libraries choose their algorithms and allocate workspaces


class GraphRecorder:
    """Records functions of tensors as CUDA graphs, on its own stream.

    The graphs share one memory pool, so only one may run at a time. Beyond ``MAX_GRAPHS`` graphs, or after a failed
    recording, new sizes run without graphs, after one warning.
    """

    def __init__(self, what: str) -> None:
        """``what`` is the name of the functions in warnings."""
        self._what = what
        self._n_graphs = 0
        self._is_full = False

    def by_shape(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """Run ``step``, a function of tensors (or None), as one graph per combination of their shapes and dtypes.

        It returns a tensor or a tuple of tensors, which later calls don't change.
        """
        recordings: dict[tuple, tuple[list[Tensor | None], Callable[[], object], Any]] = {}

        def run(*given: Tensor | None) -> Any:
            # Tensors created in inference mode can't be written outside it.
            key = torch.is_inference_mode_enabled(), *(one if one is None else (one.shape, one.dtype) for one in given)
            if key not in recordings:
                inputs = [_copied(one) for one in given]
                if (recording := self._record(partial(step, *inputs))) is None:
                    return step(*given)
                recordings[key] = inputs, *recording
            inputs, replay, made = recordings[key]
            for own, one in zip(inputs, given):
                if own is not None and one is not None:
                    own.copy_(one)
            replay()
            return tuple(map(_copied, made)) if isinstance(made, tuple) else _copied(made)

        return run

    def _record(self, work: Callable[[], Any]) -> tuple[Callable[[], object], Any] | None:
        """Return a function that replays ``work``, and the tensors that it writes; None to run without a graph."""
        if self._is_full:
            return None
        try:
            recording = self.capture(work)
        except RuntimeError as error:
            self._is_full = True
            cause = error.__context__ if isinstance(error.__context__, RuntimeError) else error
            print(f"warning: {self._what} runs without CUDA graphs ({reason(cause)})", file=sys.stderr)
            return None
        self._n_graphs += 1
        if self._n_graphs == MAX_GRAPHS:
            self._is_full = True
            print(f"warning: {self._what}: sizes beyond {MAX_GRAPHS} run without CUDA graphs", file=sys.stderr)
        return recording

    def capture(self, work: Callable[[], Any]) -> tuple[Callable[[], object], Any]:
        """Run ``work`` a few times, then record it; raises RuntimeError if that's impossible.

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
                # The outer context restores the stream if the inner one fails to.
                with (
                    torch.cuda.stream(before),
                    torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"),
                ):
                    return graph.replay, work()
            except BaseException:
                generator.graphsafe_set_state(drawn)  # otherwise, it stays in capture state
                raise
        finally:
            torch.set_autocast_cache_enabled(caches)


def _copied(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.clone()
