"""Tacotron 2's two stacks of convolutions: the encoder, before its LSTM, and the postnet."""

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tacotron2.config import ModelConfig
from tacotron2.layers import ConvolutionBlock


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
        """embedded (B, L, C), lengths (B,) -> memory (B, L, C), zero at padding.

        ``mask`` (B, L) hides padding from the convolutions; without it they read the padding symbol, as in the
        original.
        """
        x = embedded.transpose(1, 2)
        if mask is not None:
            x = x * mask.unsqueeze(1)
        for convolution in self.convolutions:
            x = convolution(x, mask)
        packed = pack_padded_sequence(x.transpose(1, 2), lengths.cpu(), batch_first=True, enforce_sorted=False)
        memory, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=embedded.size(1))
        return memory


class Postnet(nn.Module):
    """Convolutions that give a residual of the decoder's mels (Shen et al. 2018, section 2.2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        n_mels, n_layers = config.n_mel_channels, config.postnet_n_convolutions
        widths = [n_mels, *[config.postnet_embedding_dim] * (n_layers - 1), n_mels]
        self.convolutions = nn.ModuleList(
            ConvolutionBlock(
                *widths[i : i + 2],
                kernel_size=config.postnet_kernel_size,
                activation="tanh" if i + 1 < n_layers else "linear",
            )
            for i in range(n_layers)
        )

    def forward(self, mel: Tensor, mask: Tensor | None) -> Tensor:
        """mel (B, n_mels, F) -> residual (B, n_mels, F); ``mask`` (B, F) hides padding from the convolutions."""
        x = mel if mask is None else mel * mask.unsqueeze(1)
        for convolution in self.convolutions:
            x = convolution(x, mask)
        return x
