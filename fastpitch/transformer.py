"""Feed-forward Transformer blocks: self-attention, then two convolutions over time (FastSpeech, section 3.1).

The modules' ``side`` is "in" for the encoder or "out" for the decoder, as in the names of the configuration's fields.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.nn.layers import Dropout
from fastpitch.config import ModelConfig


class PositionalEmbedding(nn.Module):
    """Sinusoidal position embeddings: sines in the first half of the channels, cosines in the second half."""

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        self.inv_freq: Tensor
        exponents = torch.arange(0.0, n_channels, 2.0) / n_channels
        self.register_buffer("inv_freq", 1 / 10000**exponents)

    def forward(self, n_positions: int) -> Tensor:
        """Return embeddings (n_positions, C) of positions 0, 1, 2..."""
        positions = torch.arange(n_positions, device=self.inv_freq.device, dtype=self.inv_freq.dtype)
        phases = positions.unsqueeze(1) * self.inv_freq
        return torch.cat([phases.sin(), phases.cos()], dim=1)


class MultiHeadAttn(nn.Module):
    """Self-attention with a residual connection and layer norm after it."""

    def __init__(self, config: ModelConfig, side: str) -> None:
        super().__init__()
        self.n_heads: int = getattr(config, f"{side}_fft_n_heads")
        self.d_head: int = getattr(config, f"{side}_fft_d_head")
        n_channels, width = config.symbols_embedding_dim, self.n_heads * self.d_head
        self.drop_attention = Dropout(getattr(config, f"p_{side}_fft_dropatt"))
        self.qkv_net = nn.Linear(n_channels, 3 * width)
        self.drop = Dropout(getattr(config, f"p_{side}_fft_dropout"))
        self.o_net = nn.Linear(width, n_channels, bias=False)
        self.layer_norm = nn.LayerNorm(n_channels)

    def forward(self, x: Tensor, mask: Tensor, pieces: list[int] | None = None) -> Tensor:
        """x (B, L, C), mask (B, L, 1) bool -> (B, L, C); with `Packing`'s ``pieces``, x (1, N, C) is a packed batch."""
        qkv = self.qkv_net(x)
        if pieces is None:
            attended = self._attend(qkv, mask)
        else:
            parts = list(qkv.split(pieces, dim=1))
            for index in range(0, len(parts), 2):
                parts[index] = self._attend(parts[index], None)
                parts[index + 1] = parts[index + 1][:, :, : self.n_heads * self.d_head]  # a gap: masked afterwards
            attended = torch.cat(parts, dim=1)
        return self.layer_norm(x + self.drop(self.o_net(attended)))

    def _attend(self, qkv: Tensor, mask: Tensor | None) -> Tensor:
        """qkv (B, L, 3 * n_heads * d_head) -> (B, L, n_heads * d_head)."""
        n_batch, length, _ = qkv.shape
        q, k, v = qkv.view(n_batch, length, 3, self.n_heads, self.d_head).permute(2, 0, 3, 1, 4).unbind()
        dropout_p = self.drop_attention.p if self.training else 0.0
        if mask is None and dropout_p > 0:
            # Same as scaled_dot_product_attention, whose dropout is slow on CPUs.
            weights = torch.softmax(q @ k.transpose(2, 3) * self.d_head**-0.5, dim=3)
            attended = self.drop_attention(weights).to(v.dtype) @ v
        else:
            key_mask = None if mask is None else mask.view(n_batch, 1, 1, length)
            attended = F.scaled_dot_product_attention(q, k, v, attn_mask=key_mask, dropout_p=dropout_p)
        return attended.transpose(1, 2).reshape(n_batch, length, self.n_heads * self.d_head)


class PositionwiseConvFF(nn.Module):
    """Convolution, ReLU, convolution, with a residual connection and layer norm after it."""

    def __init__(self, config: ModelConfig, side: str) -> None:
        super().__init__()
        n_channels: int = config.symbols_embedding_dim
        n_filters: int = getattr(config, f"{side}_fft_conv1d_filter_size")
        size: int = getattr(config, f"{side}_fft_conv1d_kernel_size")
        self.CoreNet = nn.Sequential(
            nn.Conv1d(n_channels, n_filters, size, padding=size // 2),
            nn.ReLU(),
            nn.Conv1d(n_filters, n_channels, size, padding=size // 2),
            Dropout(getattr(config, f"p_{side}_fft_dropout")),
        )
        self.layer_norm = nn.LayerNorm(n_channels)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """x (B, L, C) -> (B, L, C); ``mask`` zeroes the first convolution's output at padding."""
        hidden = self.CoreNet[0](x.transpose(1, 2))
        if mask is not None:
            hidden = hidden.mul_(mask.transpose(1, 2))
        hidden = self.CoreNet[3](self.CoreNet[2](hidden.relu_()))
        return self.layer_norm(x + hidden.transpose(1, 2))


class TransformerLayer(nn.Module):
    """One feed-forward Transformer block."""

    def __init__(self, config: ModelConfig, side: str) -> None:
        super().__init__()
        self.mask_convolutions = config.mask_convolutions
        self.dec_attn = MultiHeadAttn(config, side)
        self.pos_ff = PositionwiseConvFF(config, side)

    def forward(self, x: Tensor, mask: Tensor, pieces: list[int] | None = None) -> Tensor:
        """x (B, L, C), mask (B, L, 1) bool -> (B, L, C), zero at padding; ``pieces`` as in `MultiHeadAttn`."""
        x = self.dec_attn(x, mask, pieces) * mask
        return self.pos_ff(x, mask if self.mask_convolutions else None) * mask


class Packing:
    """A padded batch (B, L, C) as one sequence (1, N, C), so that nothing is computed for padding.

    ``gap`` rows of zeros, at least half a convolution's kernel, follow each utterance.
    """

    def __init__(self, mask: Tensor, *, gap: int) -> None:
        """mask (B, L, 1) bool, True where valid; synchronizes with a GPU."""
        valid = mask.squeeze(2)
        lengths = valid.sum(1)
        ends = (lengths + gap).cumsum(0)
        n_rows = int(ends[-1])
        places = (ends - lengths - gap).unsqueeze(1) + torch.arange(valid.size(1), device=mask.device)
        self._valid = mask
        self._places = places.clamp(max=n_rows - 1)  # (B, L) row in the sequence
        own_places = self._places[valid]
        self._sources = own_places.new_zeros(n_rows)  # (N,) row in the flattened batch; any row for gaps
        self._sources[own_places] = valid.flatten().nonzero().squeeze(1)
        self.mask = torch.zeros(1, n_rows, 1, dtype=torch.bool, device=mask.device)  # False in gaps
        self.mask[0, own_places] = True
        self.pieces: list[int] = torch.stack([lengths, torch.full_like(lengths, gap)], dim=1).flatten().tolist()

    def pack(self, x: Tensor) -> Tensor:
        """(B, L, C) -> (1, N, C), zero in gaps."""
        return F.embedding(self._sources.unsqueeze(0), x.reshape(-1, x.size(2))) * self.mask

    def unpack(self, x: Tensor) -> Tensor:
        """(1, N, C) -> (B, L, C), zero at padding."""
        return F.embedding(self._places, x[0]) * self._valid


class FFTransformer(nn.Module):
    """Feed-forward Transformer blocks with positional embeddings; ``embedding`` maps ids or features to channels."""

    def __init__(self, config: ModelConfig, side: str, embedding: nn.Module | None = None) -> None:
        super().__init__()
        self.mask_convolutions = config.mask_convolutions
        self.kernel_size: int = getattr(config, f"{side}_fft_conv1d_kernel_size")
        self.word_emb = nn.Identity() if embedding is None else embedding
        self.pos_emb = PositionalEmbedding(config.symbols_embedding_dim)
        self.drop = Dropout(getattr(config, f"p_{side}_fft_dropemb"))
        n_layers: int = getattr(config, f"{side}_fft_n_layers")
        self.layers = nn.ModuleList(TransformerLayer(config, side) for _ in range(n_layers))

    def forward(self, inputs: Tensor, mask: Tensor, conditioning: Tensor | None = None) -> Tensor:
        """inputs (B, L) ids or (B, L, C), mask (B, L, 1) bool, conditioning (B, 1, C) -> (B, L, C), zero at padding."""
        x = self.word_emb(inputs)
        x = x + self.pos_emb(x.size(1))
        if conditioning is not None:
            x = x + conditioning
        x = self.drop(x * mask)
        if not torch.jit.is_scripting():  # noqa: SIM102 - TorchScript skips the body of this condition alone
            # On a CPU, where reading the lengths doesn't synchronize, nothing is computed for padding.
            if self.mask_convolutions and len(x) > 1 and x.device.type == "cpu" and not torch.compiler.is_compiling():
                packing = Packing(mask, gap=self.kernel_size // 2)
                packed = packing.pack(x)
                for layer in self.layers:
                    packed = layer(packed, packing.mask, packing.pieces)
                return packing.unpack(packed)
        for layer in self.layers:
            x = layer(x, mask)
        return x
