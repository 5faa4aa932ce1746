"""Durations, pitch and energy of tokens: predicted from text, averaged over frames, expanded to frames; pitch in Hz."""

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.nn.layers import Dropout
from fastpitch.config import ModelConfig


class ConvReLUNorm(nn.Module):
    """Convolution over time, ReLU, layer norm over channels, dropout; a block of `TemporalPredictor`."""

    def __init__(self, in_channels: int, out_channels: int, *, kernel_size: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv = nn.Conv1d(in_channels, out_channels, kernel_size, padding=kernel_size // 2)
        self.norm = nn.LayerNorm(out_channels)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """x (B, L, in_channels) -> (B, L, out_channels)."""
        return self.dropout(self.norm(F.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)))


class TemporalPredictor(nn.Module):
    """Predicts one value a token: convolution blocks, then a linear layer."""

    in_float32 = ("fc",)

    def __init__(self, config: ModelConfig, name: str) -> None:
        """``name``, "dur", "pitch" or "energy", is in the names of its fields of the configuration."""
        super().__init__()
        self.mask_convolutions = config.mask_convolutions
        n_filters: int = getattr(config, f"{name}_predictor_filter_size")
        widths = [config.symbols_embedding_dim, *[n_filters] * getattr(config, f"{name}_predictor_n_layers")]
        size, dropout = getattr(config, f"{name}_predictor_kernel_size"), getattr(config, f"p_{name}_predictor_dropout")
        blocks = (ConvReLUNorm(*pair, kernel_size=size, dropout=dropout) for pair in pairwise(widths))
        self.layers = nn.Sequential(*blocks)
        self.fc = nn.Linear(n_filters, 1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """x (B, L, C), mask (B, L, 1) bool -> float32 (B, L), zero at padding."""
        x = x * mask
        for layer in self.layers:
            x = layer(x)
            if self.mask_convolutions:
                x = x * mask
        # Not a matrix product, which autocast would compute in 16 bits, too few for durations and pitch.
        value = (x.float() * self.fc.weight[0]).sum(2) + self.fc.bias
        return value * mask.squeeze(2)


def durations_from_logs(log_durations: Tensor, max_duration: float) -> Tensor:
    """Predicted log(1 + frames) (B, L) -> frames (B, L), not rounded, within 0 and ``max_duration``."""
    return torch.clamp(torch.exp(log_durations) - 1, 0, max_duration)


def whole_frames(durations: Tensor) -> Tensor:
    """Durations (B, L), half rounding up -> int64 (B, L); an utterance of no frame gets one, at its longest token."""
    frames = torch.floor(durations.float() + 0.5).long()
    silent = (frames.sum(1, keepdim=True) == 0).long()
    return frames.scatter_add(1, durations.argmax(1, keepdim=True), silent)


def regulate_length(encoded: Tensor, frames: Tensor, n_frames: int | None) -> tuple[Tensor, Tensor]:
    """Repeat each token for its frames: encoded (B, L, C), frames (B, L) -> (B, F, C), lengths (B,).

    F is ``n_frames``, to which utterances are cut, or the longest length, which synchronizes.
    """
    ends = frames.cumsum(1)
    lengths = ends[:, -1]
    size = int(lengths.max()) if n_frames is None else n_frames
    lengths = lengths.clamp(max=size)
    positions = torch.arange(size, device=frames.device).expand(frames.size(0), size).contiguous()
    tokens = torch.searchsorted(ends, positions, right=True).clamp(max=frames.size(1) - 1)
    first_rows = torch.arange(frames.size(0), device=frames.device).unsqueeze(1) * frames.size(1)
    regulated = F.embedding(tokens + first_rows, encoded.reshape(-1, encoded.size(2)))
    return regulated * (positions < lengths.unsqueeze(1)).unsqueeze(2), lengths


def means_over_tokens(values: Tensor, durations: Tensor) -> Tensor:
    """Mean over each token's nonzero frames, 0 without any: values (B, F), durations (B, L) -> float32 (B, L)."""
    # Differences of cumulative sums in float64, which are as exact as separate sums in float32.
    nonzero = (values != 0).double()
    sums = F.pad(torch.stack([values.double(), nonzero]).cumsum(2), (1, 0))  # (2, B, 1 + F)
    ends = durations.long().cumsum(1).clamp(max=values.size(1))
    starts = F.pad(ends[:, :-1], (1, 0))
    totals, counts = (sums.gather(2, ends.expand(2, -1, -1)) - sums.gather(2, starts.expand(2, -1, -1))).unbind()
    return (totals / counts.clamp(min=1)).float()


def energies_of_tokens(mels: Tensor, durations: Tensor) -> Tensor:
    """log(1 + mean norm of a token's mel frames): mels (B, n_mels, F), durations (B, L) -> float32 (B, L)."""
    return torch.log1p(means_over_tokens(mels.float().norm(dim=1), durations))
