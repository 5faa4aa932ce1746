"""FastPitch's convolutions in the forms that onnxruntime computes fastest on a CPU; the same numbers to rounding."""

from copy import deepcopy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fastpitch.model import FastPitch


class _RowConvolution(nn.Module):
    """A convolution of images of one row: for those alone onnxruntime has its fast memory layouts."""

    def __init__(self, conv: nn.Conv1d) -> None:
        super().__init__()
        self.weight = nn.Parameter(conv.weight.detach().unsqueeze(2))
        self.bias, self.padding = conv.bias, (0, int(conv.padding[0]))

    def forward(self, x: Tensor) -> Tensor:
        """x (B, in_channels, L) -> (B, out_channels, L)."""
        return F.conv2d(x.unsqueeze(2), self.weight, self.bias, padding=self.padding).squeeze(2)


class _ProductConvolution(nn.Module):
    """A convolution as one matrix product: neighbors are put together before it, or its terms are added after it.

    onnxruntime's products of 8-bit integers whose scale is found at run time are fast, and its convolutions of such
    are not.
    """

    def __init__(self, conv: nn.Conv1d) -> None:
        super().__init__()
        self.size, self.padding, self.n_out = conv.kernel_size[0], int(conv.padding[0]), conv.out_channels
        self.adds_after = conv.out_channels < conv.in_channels  # whichever are fewer numbers
        taps = conv.weight.detach().unbind(2)  # (n_out, n_in) each
        self.weight = nn.Parameter(torch.cat(taps, dim=0 if self.adds_after else 1).T.contiguous())
        assert conv.bias is not None
        self.bias = conv.bias

    def forward(self, x: Tensor) -> Tensor:
        """x (B, in_channels, L) -> (B, out_channels, L)."""
        padded = F.pad(x.transpose(1, 2), (0, 0, self.padding, self.padding))
        length = padded.size(1) - self.size + 1
        if self.adds_after:
            terms = (padded @ self.weight).split(self.n_out, dim=2)
            total = self.bias + terms[0][:, :length]
            for place in range(1, self.size):
                total = total + terms[place][:, place : place + length]
            return total.transpose(1, 2)
        neighbors = [padded[:, place : place + length] for place in range(self.size)]
        return (torch.cat(neighbors, dim=2) @ self.weight + self.bias).transpose(1, 2)


def with_onnx_convolutions(network: FastPitch, *, as_products: bool) -> FastPitch:
    """A network of the same weights whose convolutions are convolutions of rows, or matrix products."""
    form = _ProductConvolution if as_products else _RowConvolution
    changed = deepcopy(network, {id(one): one for one in network.parameters()})
    for module in list(changed.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.Conv1d):
                setattr(module, name, form(child))
    return changed
