"""Length buckets of inference: work padded up to a few shapes, so that compiled code and CUDA graphs fit it."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from common.synthesis.options import LONGEST_FRAMES, LONGEST_SYMBOLS


@dataclass(frozen=True)
class PaddedShapes:
    """The shapes that batches are padded to: ``n_lengths`` evenly spaced ones, whose multiples follow; powers of two
    as numbers of utterances, up to ``batch_size``.
    """

    n_lengths: int
    batch_size: int

    @staticmethod
    def of(n_lengths: int, batch_size: int) -> "PaddedShapes | None":
        """None for 0 lengths: batches are then padded to their longest utterance alone."""
        return PaddedShapes(n_lengths, batch_size) if n_lengths else None

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


def padded_inference(infer: Callable[..., Tensor], shapes: PaddedShapes) -> Callable[..., Tensor]:
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
