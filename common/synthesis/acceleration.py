"""Networks made faster at inference: batches padded to few shapes, TorchScript and torch.compile."""

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from common.checkpoints.loading import LoadedCheckpoint
from common.precision import allow_compiled_shapes
from common.synthesis.options import LONGEST_FRAMES, LONGEST_SYMBOLS, VoiceOptions

Infer = Callable[..., Tensor]  # mel (B, n_mels, F), lengths (B,) or None -> wave (B, F * hop)


@dataclass(frozen=True)
class PaddedShapes:
    """What batches are padded to: multiples of one ``n_lengths``-th of the longest length, and powers of two of
    utterances, up to ``batch_size``.
    """

    n_lengths: int
    batch_size: int

    @staticmethod
    def of(options: VoiceOptions) -> "PaddedShapes | None":
        """Shapes for ``--length-buckets``; None: batches are padded to their longest utterance."""
        n_lengths = options.acceleration.length_buckets
        return PaddedShapes(n_lengths, options.batch_size) if n_lengths else None

    @property
    def frame_step(self) -> int:
        """Numbers of mel frames are multiples of it."""
        return -(-LONGEST_FRAMES // self.n_lengths)

    def symbols(self, n_symbols: int) -> int:
        """The number of symbols that a batch is padded to."""
        step = -(-LONGEST_SYMBOLS // self.n_lengths)
        return -(-n_symbols // step) * step

    def rows(self, n_utterances: int) -> int:
        """The number of utterances that a batch is padded to."""
        return max(n_utterances, min(1 << (n_utterances - 1).bit_length(), self.batch_size))


GRAPH_SHAPES = PaddedShapes(LONGEST_FRAMES // 64, batch_size=1)  # 64 frames are 0.7 s; batches are not filled up


def padded_inference(infer: Infer, shapes: PaddedShapes) -> Infer:
    """A vocoder's ``infer(mel, lengths)`` of padded mels (B, n_mels, F), whose wave (B, F * hop) has no padding."""

    def padded(mel: Tensor, lengths: Tensor | None) -> Tensor:
        n_rows, _, n_frames = mel.shape
        further, beyond = shapes.rows(n_rows) - n_rows, -n_frames % shapes.frame_step
        if lengths is None:  # always pass lengths, so that each shape is compiled once
            lengths = torch.full((n_rows,), n_frames, device=mel.device)
        # Padding utterances may have any length.
        wave = infer(F.pad(mel, (0, beyond, 0, 0, 0, further)), F.pad(lengths, (0, further), value=n_frames))
        return wave[:n_rows, : wave.size(1) // (n_frames + beyond) * n_frames]

    return padded


def compiled(infer: Callable[..., Any], *, name: str, shapes: PaddedShapes | None = None) -> Callable[..., Any]:
    """``infer`` of the network ``name``, compiled when it is first called: for any shape, or for each of ``shapes``.

    Where compiling fails (without a C++ compiler, for one) it runs as it is, after one warning.
    """
    torch._logging.set_logs(dynamo=logging.ERROR)  # hide warnings about graph breaks; users can't act on them
    if shapes is not None:
        allow_compiled_shapes(shapes.n_lengths**2 * (shapes.batch_size.bit_length() + 1))
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
    """The network of a checkpoint, compiled by ``--torchscript`` or ``--compile`` where its model supports it."""
    spec, wanted = loaded.spec, options.acceleration
    if loaded.exported is not None:
        return network
    if wanted.torchscript and (to_torchscript := spec.find("model", "to_torchscript")) is not None:
        return to_torchscript(network)
    if wanted.compile and spec.compilable:
        network.infer = compiled(network.infer, name=spec.name, shapes=PaddedShapes.of(options))
    return network
