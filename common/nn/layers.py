"""Layers and masks that more than one model is made of."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

P = ParamSpec("P")
R = TypeVar("R")


def mask_from_lengths(lengths: Tensor, max_length: int | None = None) -> Tensor:
    """Valid positions of padded sequences: ``lengths`` (B,) -> bool (B, L), True where position < length.

    L is ``max_length``, or the longest of ``lengths`` (which waits for the device) when it is not given.
    """
    size = int(lengths.max()) if max_length is None else max_length
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(1)


def never_compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Keep a function out of compiled graphs, as `torch.compiler.disable` does, which loads the compiler at once."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        chosen = torch.compiler.disable(function) if torch.compiler.is_compiling() else function
        return chosen(*args, **kwargs)

    return call


class Dropout(nn.Dropout):
    """Dropout that draws 16 random bits an element on a CPU, where torch's own takes four times as long."""

    def forward(self, x: Tensor) -> Tensor:
        if torch.jit.is_scripting() or not self._draws_bits(x):
            return F.dropout(x, self.p, self.training)
        threshold = round(self.p * 2**16)
        words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        keep = words.view(torch.int16)[: x.numel()].view(x.shape) >= threshold - 2**15
        return (x * keep).mul_(1 / (1 - threshold / 2**16))

    @torch.jit.unused
    def _draws_bits(self, x: Tensor) -> bool:
        on_cpu = x.device.type == "cpu" and not torch.compiler.is_compiling()
        return on_cpu and self.training and 0 < self.p < 1


class ConvReLUNorm(nn.Module):
    """Convolution over time, ReLU, layer norm over channels, dropout; a block of FastPitch's predictors."""

    def __init__(self, in_channels: int, out_channels: int, *, kernel_size: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv = nn.Conv1d(in_channels, out_channels, kernel_size, padding=kernel_size // 2)
        self.norm = nn.LayerNorm(out_channels)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, L, in_channels) -> (B, L, out_channels)."""
        return self.dropout(self.norm(F.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)))
