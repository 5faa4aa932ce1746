"""A vocoder's work recorded as CUDA graphs, by length bucket: hundreds of small kernels are launched as one."""

import sys
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from common.synthesis.options import LONGEST_FRAMES

Infer = Callable[[Tensor, Tensor | None], Tensor]  # mel (B, n_mels, F), lengths (B,) -> wave (B, F * hop)

BUCKET_FRAMES = 64  # lengths are rounded up to a multiple of it; 0.7 s. Beyond LONGEST_FRAMES a GPU is busy anyway
LARGEST_BATCH = 8  # and so does a larger batch
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


class _Bucket:
    """One recorded size: the tensors that its graph reads and writes."""

    def __init__(self, infer: Infer, mel: Tensor, *, n_frames: int, masked: bool, record: Recorder) -> None:
        self._mel = mel.new_zeros(mel.size(0), mel.size(1), n_frames)
        self._lengths = torch.full((mel.size(0),), n_frames, device=mel.device) if masked else None
        self._graph, self._wave = record(lambda: infer(self._mel, self._lengths))

    def infer(self, mel: Tensor, lengths: Tensor | None) -> Tensor:
        """mel (B, n_mels, F), lengths (B,) -> wave (B, T of the bucket), which the next call leaves alone."""
        n_frames = mel.size(2)
        self._mel[:, :, :n_frames] = mel
        self._mel[:, :, n_frames:] = 0
        if self._lengths is not None:
            self._lengths.copy_(lengths if lengths is not None else torch.full_like(self._lengths, n_frames))
        self._graph.replay()
        return self._wave.clone()


class BucketedGraphs:
    """Runs ``infer`` as recorded work where its size has been recorded, or can be; otherwise as it is.

    Frames are rounded up to a bucket's, with the lengths passed on, so the sound is that of the exact length. What
    is longer than ``LONGEST_FRAMES``, in a larger batch than ``LARGEST_BATCH``, or of a size beyond the first
    ``MAX_GRAPHS``, runs as it is; if recording fails, everything does from then on, after one warning.
    """

    def __init__(self, infer: Infer, *, record: Recorder) -> None:
        self._infer = infer
        self._record = record
        self._buckets: dict[tuple[int, int, bool], _Bucket] = {}
        self._warned: set[str] = set()
        self._failed = False

    def __call__(self, mel: Tensor, lengths: Tensor | None) -> Tensor:
        """mel (B, n_mels, F), lengths (B,) frames or None for F each -> wave (B, F * hop)."""
        bucket = self._bucket_for(mel, lengths)
        if bucket is None:
            return self._infer(mel, lengths)
        wave = bucket.infer(mel, lengths)
        return wave[:, : wave.size(1) // bucket_frames(mel.size(2)) * mel.size(2)]

    def _bucket_for(self, mel: Tensor, lengths: Tensor | None) -> _Bucket | None:
        n_frames = bucket_frames(mel.size(2))
        if self._failed:
            return None
        if n_frames > LONGEST_FRAMES or mel.size(0) > LARGEST_BATCH:
            self._warn(
                f"--cuda-graphs: batches of more than {LARGEST_BATCH} phrases or {LONGEST_FRAMES} frames "
                "run without graphs, which would not make them faster"
            )
            return None
        masked = lengths is not None or n_frames != mel.size(2)
        key = (mel.size(0), n_frames, masked)
        if key not in self._buckets:
            if len(self._buckets) == MAX_GRAPHS:
                self._warn(f"--cuda-graphs: {MAX_GRAPHS} sizes are recorded; other sizes run without graphs")
                return None
            try:
                self._buckets[key] = _Bucket(self._infer, mel, n_frames=n_frames, masked=masked, record=self._record)
            except RuntimeError as error:
                self._failed = True
                reason = str(error).strip().split("\n")[0]
                self._warn(f"--cuda-graphs: the work cannot be recorded and runs without graphs ({reason})")
                return None
        return self._buckets[key]

    def _warn(self, line: str) -> None:
        if line not in self._warned:
            self._warned.add(line)
            print(f"warning: {line}", file=sys.stderr)


def bucket_frames(n_frames: int) -> int:
    """The frames of the bucket that ``n_frames`` fall into."""
    return -(-n_frames // BUCKET_FRAMES) * BUCKET_FRAMES
