"""A vocoder's work recorded as CUDA graphs, by shape: hundreds of small kernels are launched as one."""

import sys
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from common.synthesis.options import LONGEST_FRAMES

Infer = Callable[[Tensor, Tensor | None], Tensor]  # mel (B, n_mels, F), lengths (B,) -> wave (B, F * hop)

LARGEST_BATCH = 8  # a larger one, or one longer than LONGEST_FRAMES, keeps the GPU busy without a graph
MAX_GRAPHS = 32  # each keeps its own input and output
WARMUP_RUNS = 3  # before recording, so that libraries have chosen their algorithms and made their workspaces


class Graph(Protocol):
    """Recorded work."""

    def replay(self) -> None:
        """Queue the work again, from the tensors that it read to those that it wrote."""


# (work, without arguments) -> the recorded work, and the tensor that it writes
Recorder = Callable[[Callable[[], Tensor]], tuple[Graph, Tensor]]


class CudaGraphRecorder:
    """Records work as CUDA graphs that share their memory, since only one of them runs at a time."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, work: Callable[[], Tensor]) -> tuple[Graph, Tensor]:
        """Record ``work``, which must not wait for the device, after running it on a side stream."""
        current = torch.cuda.current_stream()
        side = torch.cuda.Stream()
        side.wait_stream(current)
        with torch.cuda.stream(side):
            for _ in range(WARMUP_RUNS):
                work()
        current.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            output = work()
        return graph, output


class RecordedInference:
    """Runs ``infer`` as recorded work for each shape of its mels, which are padded to few shapes (`padded_inference`).

    What is longer than ``LONGEST_FRAMES``, in a larger batch than ``LARGEST_BATCH``, or of a shape beyond the first
    ``MAX_GRAPHS``, runs as it is; if recording fails, everything does from then on, after one warning.
    """

    def __init__(self, infer: Infer, *, record: Recorder) -> None:
        self._infer = infer
        self._record = record
        self._recorded: dict[torch.Size, tuple[Graph, Tensor, Tensor, Tensor]] = {}  # with mel, lengths and wave
        self._warned: set[str] = set()
        self._failed = False

    def __call__(self, mel: Tensor, lengths: Tensor | None) -> Tensor:
        """mel (B, n_mels, F), lengths (B,) frames -> wave (B, F * hop), which the next call leaves alone."""
        if lengths is None or not self._is_recorded(mel, lengths):
            return self._infer(mel, lengths)
        graph, own_mel, own_lengths, wave = self._recorded[mel.shape]
        own_mel.copy_(mel)
        own_lengths.copy_(lengths)
        graph.replay()
        return wave.clone()

    def _is_recorded(self, mel: Tensor, lengths: Tensor) -> bool:
        """Whether there is recorded work for a shape, which is recorded when it is first met."""
        if self._failed or mel.shape in self._recorded:
            return not self._failed
        if mel.size(2) > LONGEST_FRAMES or mel.size(0) > LARGEST_BATCH:
            limits = f"batches of more than {LARGEST_BATCH} phrases or {LONGEST_FRAMES} frames"
            return self._warn(f"{limits} run without graphs, which would not make them faster")
        if len(self._recorded) == MAX_GRAPHS:
            return self._warn(f"{MAX_GRAPHS} sizes are recorded; other sizes run without graphs")
        own_mel, own_lengths = mel.clone(), lengths.clone()
        try:
            graph, wave = self._record(lambda: self._infer(own_mel, own_lengths))
        except RuntimeError as error:
            self._failed = True
            reason = str(error).strip().split("\n")[0]
            return self._warn(f"the work cannot be recorded and runs without graphs ({reason})")
        self._recorded[mel.shape] = graph, own_mel, own_lengths, wave
        return True

    def _warn(self, line: str) -> bool:
        if line not in self._warned:
            self._warned.add(line)
            print(f"warning: --cuda-graphs: {line}", file=sys.stderr)
        return False
