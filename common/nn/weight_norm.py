"""Copyable weight-norm and spectral-norm convolutions, with the parameter names of published checkpoints."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class WeightNorm(nn.Module):
    """weight = weight_g * weight_v / ||weight_v||, normalized over all dimensions but the first (arXiv:1602.07868).

    Subclasses list the layer after this class; its initial weights are kept.
    """

    weight: Tensor

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        weight_g, weight_v = split_weight(self.weight.detach())
        del self.weight
        self.weight_g = nn.Parameter(weight_g)
        self.weight_v = nn.Parameter(weight_v)

    def normed_weight(self) -> Tensor:
        """Return the weight that the layer convolves with, folded or not."""
        if hasattr(self, "weight_g"):  # TorchScript decides this when it compiles
            return torch._weight_norm(self.weight_v, self.weight_g, 0)
        return self.weight

    def forward(self, x: Tensor) -> Tensor:
        """x (B, in_channels, ...) -> (B, out_channels, ...)."""
        return self._conv_forward(x, self.normed_weight(), self.bias)  # type: ignore[operator]


class WeightNormConv1d(WeightNorm, nn.Conv1d):
    """A convolution over time under weight norm."""


class WeightNormConv2d(WeightNorm, nn.Conv2d):
    """nn.Conv2d under weight norm."""


def split_weight(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Split weight (C, ...) into (weight_g, weight_v); a row of zeros gets a direction of ones."""
    norms = torch.norm_except_dim(weight, 2, 0)
    return norms, torch.where(norms == 0, 1.0, weight)


def split_weights(state: dict[str, Tensor], *, is_normed: Callable[[str], bool]) -> dict[str, Tensor]:
    """Replace each plain weight whose key ``is_normed`` selects with its weight_g and weight_v, in the same order."""
    split: dict[str, Tensor] = {}
    for key, value in state.items():
        if is_normed(key):
            split[f"{key}_g"], split[f"{key}_v"] = split_weight(value)
        else:
            split[key] = value
    return split


@torch.no_grad()
def fold_weight_norm(network: nn.Module) -> None:
    """Replace weight norm in all layers of ``network`` with the equivalent plain weight."""
    for module in network.modules():
        if isinstance(module, WeightNorm) and hasattr(module, "weight_g"):
            weight = nn.Parameter(module.normed_weight(), requires_grad=module.weight_v.requires_grad)
            del module.weight_g, module.weight_v
            module.weight = weight


class SpectralNormConv1d(nn.Conv1d):
    """A convolution over time whose weight is divided by its largest singular value (arXiv:1802.05957).

    `advance` runs a power iteration to estimate it; ``forward`` doesn't, so that an update doesn't depend on its number
    of forward passes.
    """

    weight_u: Tensor
    weight_v: Tensor

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        weight = self.weight.detach()
        del self.weight
        self.weight_orig = nn.Parameter(weight)
        rows = weight.flatten(1)
        self.register_buffer("weight_u", F.normalize(torch.randn(rows.size(0)), dim=0))
        self.register_buffer("weight_v", F.normalize(torch.randn(rows.size(1)), dim=0))

    def forward(self, x: Tensor) -> Tensor:
        """x (B, in_channels, T) -> (B, out_channels, T)."""
        with torch.autocast(x.device.type, enabled=False):  # a norm needs float32
            sigma = torch.dot(self.weight_u, torch.mv(self.weight_orig.flatten(1), self.weight_v))
            weight = self.weight_orig / sigma
        return self._conv_forward(x, weight, self.bias)

    @torch.no_grad()
    def advance(self) -> None:
        """Run one power iteration: weight_v, then weight_u."""
        rows = self.weight_orig.flatten(1)
        self.weight_v.copy_(F.normalize(torch.mv(rows.t(), self.weight_u), dim=0))
        self.weight_u.copy_(F.normalize(torch.mv(rows, self.weight_v), dim=0))
