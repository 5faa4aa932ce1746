"""Layers of Tacotron 2, named and initialized as in the published model."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from common.nn.layers import ConvNorm, Dropout, Gain, mask_from_lengths
from tacotron2.config import ModelConfig

_DROPOUT = 0.5  # after each convolution of encoder and postnet


class Linear(nn.Module):
    """A linear layer under the published name ``linear_layer``, with Glorot's uniform initialization."""

    def __init__(self, in_channels: int, out_channels: int, *, bias: bool = True, gain: Gain = "linear") -> None:
        super().__init__()
        self.linear_layer = nn.Linear(in_channels, out_channels, bias=bias)
        nn.init.xavier_uniform_(self.linear_layer.weight, gain=nn.init.calculate_gain(gain))

    def forward(self, x: Tensor) -> Tensor:
        """x (..., in_channels) -> (..., out_channels)."""
        return self.linear_layer(x)


class ConvolutionBlock(nn.ModuleList):
    """Convolution, batch norm, activation (``linear``: none), dropout: a block of the encoder or postnet."""

    def __init__(self, in_channels: int, out_channels: int, *, kernel_size: int, activation: Gain) -> None:
        convolution = ConvNorm(in_channels, out_channels, kernel_size=kernel_size, gain=activation)
        super().__init__([convolution, nn.BatchNorm1d(out_channels)])
        self.dropout = Dropout(_DROPOUT)
        self.activation = activation

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """x (B, in_channels, L) -> (B, out_channels, L); ``mask`` (B, L) excludes padding, and zeroes it."""
        x = self[0](x)
        if mask is None:
            x = self[1](x)
        elif torch.jit.is_scripting() or torch.jit.is_tracing():  # at inference, statistics need no mask
            x = self[1](x) * mask.unsqueeze(1)
        else:
            norm = self[1]
            assert isinstance(norm, nn.BatchNorm1d)
            x = normalize_masked(norm, x, mask)
        if self.activation != "linear":
            x = torch.relu(x) if self.activation == "relu" else torch.tanh(x)
        return self.dropout(x)


def normalize_masked(norm: nn.BatchNorm1d, x: Tensor, mask: Tensor) -> Tensor:
    """Batch norm of x (B, C, L) over the positions in mask (B, L), zero elsewhere; no shape depends on the mask.

    A single position, which has no variance, is normalized by the running statistics.
    """
    padding = ~mask.unsqueeze(1)
    if not norm.training:
        return norm(x).masked_fill(padding, 0.0)
    assert norm.running_mean is not None and norm.running_var is not None and norm.num_batches_tracked is not None
    count, values = mask.sum(), x.float()
    mean = values.masked_fill(padding, 0.0).sum((0, 2)) / count
    variance = (values - mean.unsqueeze(1)).masked_fill(padding, 0.0).square().sum((0, 2)) / count
    several = count > 1  # on the device, as the count is
    used_mean = torch.where(several, mean, norm.running_mean)
    scale = norm.weight * torch.rsqrt(torch.where(several, variance, norm.running_var) + norm.eps)
    with torch.no_grad():
        momentum = (norm.momentum or 0.0) * several.float()
        norm.running_mean.lerp_(mean, momentum)
        norm.running_var.lerp_(variance * count / (count - 1).clamp(min=1), momentum)
        norm.num_batches_tracked.add_(several)
    normed = (values - used_mean.unsqueeze(1)) * scale.unsqueeze(1) + norm.bias.unsqueeze(1)
    return normed.masked_fill(padding, 0.0).to(x.dtype)


class LocationLayer(nn.Module):
    """Features of the last and the cumulative attention weights: a convolution and a linear layer, applied as one."""

    in_float32 = ("location_conv", "location_dense")

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        n_filters = config.attention_location_n_filters
        self.location_conv = ConvNorm(2, n_filters, kernel_size=config.attention_location_kernel_size, bias=False)
        self.location_dense = Linear(n_filters, config.attention_dim, bias=False, gain="tanh")

    def folded_weight(self) -> Tensor:
        """Fold both layers into one weight (attention_dim, 2 * kernel_size); there is no activation between them."""
        return self.location_dense.linear_layer.weight @ self.location_conv.conv.weight.flatten(1)


class Attention(nn.Module):
    """Layers of location-sensitive attention (Chorowski et al. 2015, section 2.2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.query_layer = Linear(config.attention_rnn_dim, config.attention_dim, bias=False, gain="tanh")
        self.memory_layer = Linear(config.encoder_embedding_dim, config.attention_dim, bias=False, gain="tanh")
        self.v = Linear(config.attention_dim, 1, bias=False)
        self.location_layer = LocationLayer(config)


class Encoder(nn.Module):
    """Convolutions over symbols, then a bidirectional LSTM (Shen et al. 2018, section 2.2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        n_channels = config.encoder_embedding_dim
        self.convolutions = nn.ModuleList(
            ConvolutionBlock(n_channels, n_channels, kernel_size=config.encoder_kernel_size, activation="relu")
            for _ in range(config.encoder_n_convolutions)
        )
        self.lstm = nn.LSTM(n_channels, n_channels // 2, batch_first=True, bidirectional=True)

    def forward(self, embedded: Tensor, lengths: Tensor, mask: Tensor | None) -> Tensor:
        """embedded (B, L, C), lengths (B,), mask (B, L) that hides padding -> memory (B, L, C), zero at padding."""
        x = self.convolve(embedded, mask)
        if x.device.type != "cpu":
            # Under autocast to bfloat16, cuDNN's LSTM computes in float16, where small gradients underflow to zero.
            with torch.autocast(x.device.type, enabled=False):
                return self.read_padded(x.float(), lengths).to(x.dtype)
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=x.size(1))[0]

    def convolve(self, embedded: Tensor, mask: Tensor | None) -> Tensor:
        """Return the LSTM's inputs (B, L, C)."""
        x = embedded.transpose(1, 2)
        if mask is not None:
            x = x * mask.unsqueeze(1)
        for convolution in self.convolutions:
            x = convolution(x, mask)
        return x.transpose(1, 2)

    def read_padded(self, x: Tensor, lengths: Tensor) -> Tensor:
        """x (B, L, C), lengths (B,) -> the LSTM's memory (B, L, C), without synchronizing, and suitable for ONNX.

        The backward direction reads utterances aligned to the right, so that padding comes last.
        """
        n_batch, n_tokens, n_channels = x.shape
        position = torch.arange(n_tokens, device=x.device)
        moved = (n_tokens - lengths).unsqueeze(1)  # positions to the right
        at_right = x.gather(1, (position - moved).clamp(min=0).unsqueeze(2).expand(-1, -1, n_channels))
        out = self.lstm(torch.cat([x, at_right]))[0]
        width = self.lstm.hidden_size
        forward, backward = out[:n_batch, :, :width], out[n_batch:, :, width:]
        backward = backward.gather(1, (position + moved).clamp(max=n_tokens - 1).unsqueeze(2).expand(-1, -1, width))
        padding = ~mask_from_lengths(lengths, n_tokens).unsqueeze(2)
        return torch.cat([forward, backward], 2).masked_fill(padding, 0.0)


class Postnet(nn.Module):
    """Convolutions that predict a residual for the decoder's mels (Shen et al. 2018, section 2.2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.mask_convolutions = config.mask_convolutions
        n_mels, n_layers = config.n_mel_channels, config.postnet_n_convolutions
        widths = [n_mels, *[config.postnet_embedding_dim] * (n_layers - 1), n_mels]
        size = config.postnet_kernel_size
        self.convolutions = nn.ModuleList(
            ConvolutionBlock(*widths[i : i + 2], kernel_size=size, activation="tanh" if i + 1 < n_layers else "linear")
            for i in range(n_layers)
        )

    def forward(self, mel: Tensor, lengths: Tensor) -> Tensor:
        """mel (B, n_mels, F), lengths (B,) frames -> mel with the residual, (B, n_mels, F)."""
        mask: Tensor | None = None
        x = mel
        if self.mask_convolutions:  # hides padding from the convolutions
            mask = mask_from_lengths(lengths, mel.size(2))
            x = mel * mask.unsqueeze(1)
        for convolution in self.convolutions:
            x = convolution(x, mask)
        return mel + x
