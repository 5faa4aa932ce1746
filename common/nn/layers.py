"""Layers, masks and seeded noise that several models use."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Literal, ParamSpec, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from common.errors import shown

P = ParamSpec("P")
R = TypeVar("R")
Gain = Literal["linear", "relu", "tanh", "sigmoid"]  # of the activation after a layer

NOISE_BLOCK = 2048  # positions drawn at once; random numbers depend on the sizes of the draws
_KEPT_SEEDS = 2


def mask_from_lengths(lengths: Tensor, max_length: int | None = None) -> Tensor:
    """Valid positions of padded sequences: ``lengths`` (B,) -> bool (B, L), True where position < length.

    L is ``max_length``, or the longest of ``lengths`` (which waits for the device) when it is not given.
    """
    size = int(lengths.max()) if max_length is None else max_length
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(1)


def rows_by_name(
    table: Tensor, names: Sequence[str], *, known: Sequence[str], what: str, leave_out: int | None = None
) -> tuple[Tensor, list[str]]:
    """Rows of ``table`` (N, ...), of the ``known`` names, for ``names``: (len(names), ...), and the line that says
    ``what`` is new, if anything is.

    A new name, or an empty one, has the mean of all rows but ``leave_out``.
    """
    places = {name: place for place, name in reversed(list(enumerate(known)))}
    mean = table[[place for place in range(len(table)) if place != leave_out]].double().mean(0).to(table.dtype)
    rows = torch.stack([table[places[name]] if name in places else mean for name in names])
    new = [name for name in names if name and name not in places]
    return rows, [f"new {what}: {shown(new)}"] if new else []


def zero_where(padding: Tensor, x: Tensor) -> Tensor:
    """x, zero where ``padding`` is True; keeps x's memory layout on a GPU, which `Tensor.masked_fill` does not."""
    return torch.where(padding, 0.0, x) if prefers_channels_last(x) else x.masked_fill(padding, 0.0)


def scale_log_mel(mel: Tensor) -> Tensor:
    """A log-mel-spectrogram with values around 0 and 1."""
    return (mel + 5) / 2.5


def split_channels(x: Tensor, sizes: list[int]) -> list[Tensor]:
    """Split x (B, C, T) into parts of ``sizes`` channels. On a GPU, their joined gradient is channels last, as x is."""
    if prefers_channels_last(x):
        return [part.transpose(1, 2) for part in x.transpose(1, 2).split(sizes, 2)]
    return list(x.split(sizes, 1))


def normalize_masked(norm: _BatchNorm, x: Tensor, mask: Tensor) -> Tensor:
    """Batch norm of x (B, C, L) over the positions in mask (B, L), zero elsewhere.

    Computed by masked sums, so that no shape depends on the mask. A single position has no variance: the running
    statistics are used for it.
    """
    padding = ~mask.unsqueeze(1)
    if not norm.training:
        return zero_where(padding, norm(x))
    assert norm.running_mean is not None and norm.running_var is not None and norm.num_batches_tracked is not None
    count, values = mask.sum(), x.float()
    mean = zero_where(padding, values).sum((0, 2)) / count
    variance = zero_where(padding, values - mean.unsqueeze(1)).square().sum((0, 2)) / count
    several = count > 1  # on the device, as the count is
    used_mean = torch.where(several, mean, norm.running_mean)
    scale = norm.weight * torch.rsqrt(torch.where(several, variance, norm.running_var) + norm.eps)
    with torch.no_grad():
        momentum = (norm.momentum or 0.0) * several.float()
        norm.running_mean.lerp_(mean, momentum)
        norm.running_var.lerp_(variance * count / (count - 1).clamp(min=1), momentum)
        norm.num_batches_tracked.add_(several)
    normed = (values - used_mean.unsqueeze(1)) * scale.unsqueeze(1) + norm.bias.unsqueeze(1)
    return zero_where(padding, normed).to(x.dtype)


def never_compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Keep a function out of compiled graphs. `torch.compiler.disable` alone would load the compiler at import."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        chosen = torch.compiler.disable(function) if torch.compiler.is_compiling() else function
        return chosen(*args, **kwargs)

    return call


def prefers_channels_last(x: Tensor) -> bool:
    """Whether convolutions over time of x use the channels-last memory layout: on a GPU.

    Kernels for 16 bits and TF32 read that layout, and copy tensors in any other.
    """
    return x.device.type != "cpu"


def channels_last(x: Tensor) -> Tensor:
    """x (B, C, H, W) in the channels-last layout, copied only if it is in another."""
    if x.size(1) == 1:  # PyTorch takes its strides for the default layout, and would keep that
        return x.squeeze(1).unsqueeze(3).permute(0, 3, 1, 2)
    return x.contiguous(memory_format=torch.channels_last)


class TimeConv(nn.Conv1d):
    """nn.Conv1d. On a GPU, a two-dimensional channels-last convolution or a matrix product computes it.

    A transposed (B, T, C) is in that layout already, and so is the result.
    """

    def _conv_forward(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if not prefers_channels_last(x):
            return F.conv1d(x, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        rows, padding = channels_last(x.unsqueeze(2)), int(self.padding[0])
        if self.kernel_size[0] == self.stride[0] == self.groups == 1 and padding == 0:
            return F.linear(rows.squeeze(2).transpose(1, 2), weight.squeeze(2), bias).transpose(1, 2)
        stride, dilation = (1, self.stride[0]), (1, self.dilation[0])
        y = F.conv2d(rows, weight.unsqueeze(2), bias, stride, (0, padding), dilation, self.groups)
        # As squeeze(2), but not a view: the gradient of a view is copied where the result is changed in place.
        return torch.ops.aten._unsafe_view(y, [y.size(0), y.size(1), y.size(3)])


class ConvNorm(nn.Module):
    """A convolution that keeps the length, under the published name ``conv``, with Glorot's uniform initialization."""

    def __init__(
        self, in_channels: int, out_channels: int, *, kernel_size: int = 1, bias: bool = True, gain: Gain = "linear"
    ) -> None:
        super().__init__()
        self.conv = TimeConv(in_channels, out_channels, kernel_size, padding=kernel_size // 2, bias=bias)
        nn.init.xavier_uniform_(self.conv.weight, gain=nn.init.calculate_gain(gain))

    def forward(self, x: Tensor) -> Tensor:
        """x (B, in_channels, L) -> (B, out_channels, L)."""
        return self.conv(x)


class Dropout(nn.Dropout):
    """Dropout that draws 16 random bits per element on a CPU, four times as fast as PyTorch's."""

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


class SeededNoise:
    """Draws vocoders' Gaussian noise in blocks and keeps them, so that CUDA graphs read the same addresses again."""

    def __init__(self, n_channels: int) -> None:
        self._n_channels = n_channels
        self._drawn: dict[tuple[int, str], tuple[torch.Generator, list[Tensor]]] = {}

    def __deepcopy__(self, memo: dict) -> "SeededNoise":
        return SeededNoise(self._n_channels)

    @never_compiled
    def __call__(self, seed: int, n_positions: int, *, device: torch.device, first: int = 0) -> Tensor:
        """(1, n_channels, n_positions) float32, from position ``first``; a position's noise depends on it alone."""
        if (key := (seed, str(device))) not in self._drawn and len(self._drawn) == _KEPT_SEEDS:
            del self._drawn[next(iter(self._drawn))]
        generator, blocks = self._drawn.setdefault(key, (torch.Generator().manual_seed(seed), []))
        skipped, start = divmod(first, NOISE_BLOCK)
        needed = max(skipped + 1, -(-(first + n_positions) // NOISE_BLOCK))
        while len(blocks) < needed:
            # Drawn on the CPU, so that every device gets the same noise.
            blocks.append(torch.randn(NOISE_BLOCK, self._n_channels, generator=generator).t().contiguous().to(device))
        return torch.cat(blocks[skipped:needed], dim=1)[None, :, start : start + n_positions]
