"""Networks made faster at inference: batches padded to few shapes, CUDA graphs of these, and compiling."""

import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from common.checkpoints import LoadedCheckpoint
from common.precision import allow_compiled_shapes
from common.registry import GeneratorSpec, VocoderSpec
from common.synthesis.options import LONGEST_FRAMES, LONGEST_SYMBOLS, VoiceOptions

T = TypeVar("T")
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
    def frame_step(self) -> int:
        """Numbers of mel frames are multiples of it."""
        return -(-LONGEST_FRAMES // self.n_lengths)

    @property
    def n_shapes(self) -> int:
        """The number of input and output shapes of a network, not counting those longer than the longest lengths."""
        return self.n_lengths**2 * (self.batch_size.bit_length() + 1)

    def symbols(self, n_symbols: int) -> int:
        """What a batch of so many symbols is padded to."""
        step = -(-LONGEST_SYMBOLS // self.n_lengths)
        return -(-n_symbols // step) * step

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


# (work, without arguments) -> what queues the recorded work again, and the tensor or tuple that it writes
Recorder = Callable[[Callable[[], Any]], tuple[Callable[[], object], Any]]


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


class WarmGraphRecorder:
    """Records work as CUDA graphs of one `GraphRecorder`, after running it where it is recorded."""

    def __init__(self) -> None:
        self._recorder = GraphRecorder()

    def __call__(self, work: Callable[[], Any]) -> tuple[Callable[[], object], Any]:
        """Record ``work``, which must not wait for the device; returns its replay, and what it writes.

        RuntimeError where it cannot be recorded.
        """
        caches = torch.is_autocast_cache_enabled()
        torch.set_autocast_cache_enabled(False)  # cast weights would go with the context, not with the graph
        try:
            for _ in range(WARMUP_RUNS):
                self._recorder.run(work)
            return self._recorder.record(work)
        finally:
            torch.set_autocast_cache_enabled(caches)


def warn_of_failure(what: str, error: RuntimeError) -> None:
    """Say in one line that ``what`` runs without graphs, as recording it raised ``error``."""
    cause = error.__context__ if isinstance(error.__context__, RuntimeError) else error  # of a recording's end
    reason = str(cause).strip().partition("\n")[0]
    print(f"warning: {what} cannot be recorded and runs without graphs ({reason})", file=sys.stderr)


@dataclass(frozen=True)
class _Recorded:
    """Recorded work: what queues it again, and the tensors that it reads and writes."""

    replay: Callable[[], object]
    made: Any
    given: list[Tensor | None]


class RecordedInference:
    """Runs steps of a network as recorded work, for each combination of shapes of the tensors that a step is given.

    What is longer than ``LONGEST_FRAMES``, in a larger batch than ``LARGEST_BATCH``, or of shapes beyond a step's first
    ``MAX_GRAPHS``, runs as it is; if recording fails, everything does from then on. Each is said in one warning.
    """

    def __init__(self, record: Recorder) -> None:
        self._record: Recorder | None = record  # None: recording has failed
        self._works: dict[Callable[..., Any], dict[tuple, _Recorded]] = {}
        self._warned = False

    def of(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """``step``, of tensors or None to a tensor or a tuple of them, which the next call leaves alone, as it runs."""
        return partial(self._run, step)

    def _run(self, step: Callable[..., Any], *given: Tensor | None) -> Any:
        # Tensors of inference mode cannot be written outside it.
        shapes = [None if one is None else (one.shape, one.dtype) for one in given]
        key = torch.is_inference_mode_enabled(), *shapes
        works = self._works.setdefault(step, {})
        if key not in works:
            work = self._record_work(step, given, n_recorded=len(works))
            if work is None:
                return step(*given)
            works[key] = work
        work = works[key]
        for own, one in zip(work.given, given):
            if own is not None and one is not None:
                own.copy_(one)
        work.replay()
        return tuple(map(_copied, work.made)) if isinstance(work.made, tuple) else _copied(work.made)

    def _record_work(
        self, step: Callable[..., Any], given: Sequence[Tensor | None], *, n_recorded: int
    ) -> _Recorded | None:
        """What is recorded for tensors of such shapes, where that is possible."""
        own = [_copied(one) for one in given]
        batch = own[0]
        assert batch is not None, "the first is of all utterances"
        if max(batch.shape) > LONGEST_FRAMES or len(batch) > LARGEST_BATCH or n_recorded == MAX_GRAPHS:
            if not self._warned:
                limits = f"{LARGEST_BATCH} phrases or {LONGEST_FRAMES} frames, or of more than {MAX_GRAPHS} sizes"
                print(f"warning: --cuda-graphs: batches of more than {limits}, run without graphs", file=sys.stderr)
            self._warned = True
        elif self._record is not None:
            try:
                return _Recorded(*self._record(lambda: step(*own)), own)
            except RuntimeError as error:
                self._record = None
                warn_of_failure("--cuda-graphs: the work", error)
        return None


def _copied(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.clone()


def compiled(infer: Callable[..., Any], *, name: str, shapes: PaddedShapes | None = None) -> Callable[..., Any]:
    """``infer`` of the network ``name``, compiled when it is first called: for any shape, or for each of ``shapes``.

    Where compiling fails (without a C++ compiler, for one) it runs as it is, after one warning.
    """
    # The compiler warns where it splits the work, which is of no use to the user.
    torch._logging.set_logs(dynamo=logging.ERROR)
    if shapes is not None:
        allow_compiled_shapes(shapes.n_shapes)
    run = torch.compile(infer, dynamic=shapes is None)

    def compiled_or_not(*args: Any, **kwargs: Any) -> Any:
        from torch._dynamo.exc import TorchDynamoException  # here, as the compiler takes seconds to load

        nonlocal run
        try:
            return run(*args, **kwargs)
        except TorchDynamoException as error:
            reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
            print(f"warning: --compile: {name} runs uncompiled ({reason.strip()})", file=sys.stderr)
            run = infer
            return infer(*args, **kwargs)

    return compiled_or_not


def accelerated(network: Any, loaded: LoadedCheckpoint, options: VoiceOptions) -> Any:
    """The network of a checkpoint as ``--torchscript`` or ``--compile`` have it, where it can be compiled so."""
    inference = loaded.spec.inference
    assert isinstance(inference, GeneratorSpec | VocoderSpec)
    if loaded.exported is not None:
        return network
    if options.acceleration.torchscript and inference.to_torchscript is not None:
        return inference.to_torchscript(network)
    if options.acceleration.compile and inference.not_compilable is None:
        network.infer = compiled(network.infer, name=loaded.spec.name, shapes=PaddedShapes.of(options))
    return network
