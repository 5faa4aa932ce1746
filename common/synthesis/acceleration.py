"""Networks made faster at inference: batches padded to few shapes, CUDA graphs of these, and compiling."""

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from common.checkpoints import LoadedCheckpoint
from common.precision import allow_compiled_shapes
from common.registry import GeneratorSpec, VocoderSpec
from common.synthesis.options import LONGEST_FRAMES, LONGEST_SYMBOLS, VoiceOptions

Infer = Callable[..., Tensor]  # mel (B, n_mels, F), lengths (B,) or None -> wave (B, F * hop)

LARGEST_BATCH = 8  # a larger one, or one longer than LONGEST_FRAMES, keeps the GPU busy without a graph
MAX_GRAPHS = 32  # each keeps its own input and output
WARMUP_RUNS = 3  # before recording, so that libraries have chosen their algorithms and made their workspaces


@dataclass(frozen=True)
class PaddedShapes:
    """The shapes that batches are padded to: ``n_lengths`` evenly spaced ones, whose multiples follow; powers of two
    as numbers of utterances, up to ``batch_size``.
    """

    n_lengths: int
    batch_size: int

    @staticmethod
    def of(options: VoiceOptions) -> "PaddedShapes | None":
        """Shapes for ``--length-buckets``; None: batches are padded to their longest utterance alone."""
        n_lengths = options.acceleration.length_buckets
        return PaddedShapes(n_lengths, options.batch_size) if n_lengths else None

    @property
    def symbol_step(self) -> int:
        """Numbers of symbols are multiples of it."""
        return -(-LONGEST_SYMBOLS // self.n_lengths)

    @property
    def frame_step(self) -> int:
        """Numbers of mel frames are multiples of it."""
        return -(-LONGEST_FRAMES // self.n_lengths)

    @property
    def n_shapes(self) -> int:
        """The number of input and output shapes of a network, not counting those longer than the longest lengths."""
        return self.n_lengths**2 * (self.batch_size.bit_length() + 1)

    def symbols(self, n_symbols: int) -> int:
        """What a batch of so many symbols is padded to."""
        return -(-n_symbols // self.symbol_step) * self.symbol_step

    def rows(self, n_utterances: int) -> int:
        """What a batch of so many utterances is filled up to."""
        return max(n_utterances, min(1 << (n_utterances - 1).bit_length(), self.batch_size))


GRAPH_SHAPES = PaddedShapes(LONGEST_FRAMES // 64, batch_size=1)  # 64 frames are 0.7 s; batches are not filled up


def padded_inference(infer: Infer, shapes: PaddedShapes) -> Infer:
    """A vocoder's ``infer(mel, lengths)`` of padded mels (B, n_mels, F), whose wave (B, F * hop) has no padding."""

    def padded(mel: Tensor, lengths: Tensor | None) -> Tensor:
        n_rows, _, n_frames = mel.shape
        further = shapes.rows(n_rows) - n_rows
        beyond = -n_frames % shapes.frame_step
        if lengths is None:  # a shape has one form, with lengths
            lengths = torch.full((n_rows,), n_frames, device=mel.device)
        # Further utterances of any length will do.
        wave = infer(F.pad(mel, (0, beyond, 0, 0, 0, further)), F.pad(lengths, (0, further), value=n_frames))
        return wave[:n_rows, : wave.size(1) // (n_frames + beyond) * n_frames]

    return padded


# (work, without arguments) -> the recorded work, whose replay() queues it again, and the tensor that it writes
Recorder = Callable[[Callable[[], Tensor]], tuple[Any, Tensor]]


class CudaGraphRecorder:
    """Records work as CUDA graphs that share their memory, since only one of them runs at a time."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, work: Callable[[], Tensor]) -> tuple[torch.cuda.CUDAGraph, Tensor]:
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
        self._record: Recorder | None = record  # None: recording has failed
        # By shapes, recorded work with the mel and lengths that it reads and the wave that it writes, or None
        self._works: dict[torch.Size, tuple[Any, Tensor, Tensor, Tensor] | None] = {}
        self._warned: set[str] = set()

    def __call__(self, mel: Tensor, lengths: Tensor) -> Tensor:
        """mel (B, n_mels, F), lengths (B,) frames -> wave (B, F * hop), which the next call leaves alone."""
        if mel.shape not in self._works:
            self._works[mel.shape] = self._recorded(mel.clone(), lengths.clone())
        if (work := self._works[mel.shape]) is None:
            return self._infer(mel, lengths)
        graph, own_mel, own_lengths, wave = work
        own_mel.copy_(mel)
        own_lengths.copy_(lengths)
        graph.replay()
        return wave.clone()

    def _recorded(self, mel: Tensor, lengths: Tensor) -> tuple[Any, Tensor, Tensor, Tensor] | None:
        """The recorded work for the shape of ``mel``, which is its own; None where there is to be none."""
        if mel.size(2) > LONGEST_FRAMES or mel.size(0) > LARGEST_BATCH:
            limits = f"batches of more than {LARGEST_BATCH} phrases or {LONGEST_FRAMES} frames"
            self._warn(f"{limits} run without graphs, which would not make them faster")
        elif len([one for one in self._works.values() if one is not None]) == MAX_GRAPHS:
            self._warn(f"{MAX_GRAPHS} sizes are recorded; other sizes run without graphs")
        elif self._record is not None:
            try:
                graph, wave = self._record(lambda: self._infer(mel, lengths))
                return graph, mel, lengths, wave
            except RuntimeError as error:
                self._record = None
                reason = str(error).strip().split("\n")[0]
                self._warn(f"the work cannot be recorded and runs without graphs ({reason})")
        return None

    def _warn(self, line: str) -> None:
        if line not in self._warned:
            self._warned.add(line)
            print(f"warning: --cuda-graphs: {line}", file=sys.stderr)


class CompiledNetwork:
    """A network whose ``infer`` is compiled when it is first called: for any batch size and length, or for each shape.

    Where compiling fails (without a C++ compiler, for one) the network runs as it is, after one warning.
    """

    def __init__(self, network: Any, *, name: str, shapes: PaddedShapes | None = None) -> None:
        """``name`` stands in the warning; ``shapes`` are those that batches have."""
        self._network = network
        self._name = name
        # The compiler warns where it splits the work, which is of no use to the user.
        torch._logging.set_logs(dynamo=logging.ERROR)
        if shapes is not None:
            allow_compiled_shapes(shapes.n_shapes)
        self._compiled: Callable[..., Any] | None = torch.compile(network.infer, dynamic=shapes is None)

    def infer(self, *args: Any, **kwargs: Any) -> Any:
        """Run the compiled ``infer``, or the network's own with one warning if it cannot be compiled."""
        if self._compiled is not None:
            from torch._dynamo.exc import TorchDynamoException  # here, as the compiler takes seconds to load

            try:
                return self._compiled(*args, **kwargs)
            except TorchDynamoException as error:
                reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
                print(f"warning: --compile: {self._name} runs uncompiled ({reason.strip()})", file=sys.stderr)
                self._compiled = None
        return self._network.infer(*args, **kwargs)


def accelerated(network: Any, loaded: LoadedCheckpoint, options: VoiceOptions) -> Any:
    """The network of a checkpoint as ``--torchscript`` or ``--compile`` have it, where it can be compiled so."""
    spec, inference = loaded.spec, loaded.spec.inference
    assert isinstance(inference, GeneratorSpec | VocoderSpec)
    if loaded.exported is not None:
        return network
    if options.acceleration.torchscript and inference.to_torchscript is not None:
        return inference.to_torchscript(network)
    if options.acceleration.compile and inference.not_compilable is None:
        return CompiledNetwork(network, name=spec.name, shapes=PaddedShapes.of(options))
    return network
