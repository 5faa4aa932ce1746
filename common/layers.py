"""Layers and masks that more than one model is made of."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def mask_from_lengths(lengths: Tensor, max_length: int | None = None) -> Tensor:
    """Valid positions of padded sequences: ``lengths`` (B,) -> bool (B, L), True where position < length.

    L is ``max_length``, or the longest of ``lengths`` (which waits for the device) when it is not given.
    """
    size = int(lengths.max()) if max_length is None else max_length
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(1)


class ConvReLUNorm(nn.Module):
    """Convolution over time, ReLU, layer norm over channels, dropout; a block of FastPitch's predictors."""

    def __init__(self, in_channels: int, out_channels: int, *, kernel_size: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv = nn.Conv1d(in_channels, out_channels, kernel_size, padding=kernel_size // 2)
        self.norm = nn.LayerNorm(out_channels)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, L, in_channels) -> (B, L, out_channels)."""
        return self.dropout(self.norm(F.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)))
