"""Layers, masks and seeded noise that several models share."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Literal, ParamSpec, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.errors import shown

P = ParamSpec("P")
R = TypeVar("R")
Gain = Literal["linear", "relu", "tanh", "sigmoid"]  # of the activation after a layer

NOISE_BLOCK = 2048  # positions per draw; another size would give other random numbers
_KEPT_SEEDS = 2


def mask_from_lengths(lengths: Tensor, max_length: int | None = None) -> Tensor:
    """Mark valid positions: ``lengths`` (B,) -> bool (B, L); L is ``max_length``, or the maximum (synchronizes)."""
    size = int(lengths.max()) if max_length is None else max_length
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(1)


def rows_by_name(
    table: Tensor, names: Sequence[str], *, known: Sequence[str], what: str, leave_out: int | None = None
) -> tuple[Tensor, list[str]]:
    """Select the rows for ``names`` from ``table`` (N, ...), whose rows have the ``known`` names.

    A new or empty name gets the mean of all rows except ``leave_out``. Also returns a line that lists the new names.
    """
    places = {name: place for place, name in reversed(list(enumerate(known)))}
    mean = table[[place for place in range(len(table)) if place != leave_out]].double().mean(0).to(table.dtype)
    rows = torch.stack([table[places[name]] if name in places else mean for name in names])
    new = [name for name in names if name and name not in places]
    return rows, [f"new {what}, from the mean of the others: {shown(new)}"] if new else []


def scale_log_mel(mel: Tensor) -> Tensor:
    """Scale a log-mel-spectrogram to a mean near 0 and a standard deviation near 1."""
    return (mel + 5) / 2.5


def never_compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Keep a function out of compiled graphs. `torch.compiler.disable` alone would load the compiler at import."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        chosen = torch.compiler.disable(function) if torch.compiler.is_compiling() else function
        return chosen(*args, **kwargs)

    return call


class ConvNorm(nn.Module):
    """A convolution that keeps the length, with the published name ``conv`` and Glorot uniform initialization."""

    def __init__(
        self, in_channels: int, out_channels: int, *, kernel_size: int = 1, bias: bool = True, gain: Gain = "linear"
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(in_channels, out_channels, kernel_size, padding=kernel_size // 2, bias=bias)
        nn.init.xavier_uniform_(self.conv.weight, gain=nn.init.calculate_gain(gain))

    def forward(self, x: Tensor) -> Tensor:
        """x (B, in_channels, L) -> (B, out_channels, L)."""
        return self.conv(x)


class Dropout(nn.Dropout):
    """Dropout that draws 16 random bits per element on a CPU, four times as fast as PyTorch's."""

    def forward(self, x: Tensor) -> Tensor:
        if not torch.jit.is_scripting():  # noqa: SIM102 - TorchScript only skips the body of this exact condition
            if self.training and x.device.type == "cpu" and 0 < self.p < 1 and not torch.compiler.is_compiling():
                threshold = round(self.p * 2**16)
                words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
                keep = words.view(torch.int16)[: x.numel()].view(x.shape) >= threshold - 2**15
                return (x * keep).mul_(1 / (1 - threshold / 2**16))
        return F.dropout(x, self.p, self.training)


class SeededNoise:
    """Seeded Gaussian noise for vocoders, drawn in blocks that are kept because CUDA graphs reuse their addresses."""

    def __init__(self, n_channels: int) -> None:
        self._n_channels = n_channels
        self._drawn: dict[tuple[int, str], tuple[torch.Generator, list[Tensor]]] = {}

    def __deepcopy__(self, memo: dict) -> "SeededNoise":
        return SeededNoise(self._n_channels)

    @never_compiled
    def __call__(self, seed: int, n_positions: int, *, device: torch.device) -> Tensor:
        """(1, n_channels, n_positions) float32; a position's noise doesn't depend on ``n_positions``."""
        if (key := (seed, str(device))) not in self._drawn and len(self._drawn) == _KEPT_SEEDS:
            del self._drawn[next(iter(self._drawn))]
        generator, blocks = self._drawn.setdefault(key, (torch.Generator().manual_seed(seed), []))
        needed = max(1, -(-n_positions // NOISE_BLOCK))
        while len(blocks) < needed:
            # Drawn on the CPU, so that every device gets the same noise.
            blocks.append(torch.randn(NOISE_BLOCK, self._n_channels, generator=generator).t().contiguous().to(device))
        return torch.cat(blocks[:needed], dim=1)[None, :, :n_positions]
