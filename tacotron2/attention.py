"""Location-sensitive attention (Chorowski et al. 2015, section 2.2), as Tacotron 2 uses it."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tacotron2.layers import Convolution, Linear


class LocationLayer(nn.Module):
    """Features of where attention is and has been: a convolution and a linear layer, applied as one convolution."""

    def __init__(self, attention_dim: int, *, n_filters: int, kernel_size: int) -> None:
        super().__init__()
        self.location_conv = Convolution(2, n_filters, kernel_size=kernel_size, bias=False)
        self.location_dense = Linear(n_filters, attention_dim, bias=False, gain="tanh")

    def folded_weight(self) -> Tensor:
        """Both layers as one, (attention_dim, 2 * kernel_size): there is nothing between them."""
        return self.location_dense.linear_layer.weight @ self.location_conv.conv.weight.flatten(1)


class Attention(nn.Module):
    """Where in the text the decoder looks, from its state and from where it has looked."""

    def __init__(
        self,
        attention_rnn_dim: int,
        memory_dim: int,
        attention_dim: int,
        *,
        location_n_filters: int,
        location_kernel_size: int,
    ) -> None:
        super().__init__()
        self.query_layer = Linear(attention_rnn_dim, attention_dim, bias=False, gain="tanh")
        self.memory_layer = Linear(memory_dim, attention_dim, bias=False, gain="tanh")
        self.v = Linear(attention_dim, 1, bias=False)
        self.location_layer = LocationLayer(
            attention_dim, n_filters=location_n_filters, kernel_size=location_kernel_size
        )

    def forward(
        self, query: Tensor, processed_memory: Tensor, history: Tensor, location_weight: Tensor, padding: Tensor
    ) -> Tensor:
        """Weights (B, L) of each token, which sum to 1 and are 0 at padding.

        query (B, attention_rnn_dim), processed_memory (B, L, attention_dim); history (B, 2, L) holds the last
        step's weights and the sum of all; location_weight is `LocationLayer.folded_weight`; padding (B, L) bool.
        """
        kernel_size = location_weight.size(1) // 2
        windows = F.pad(history, (kernel_size // 2, kernel_size // 2)).unfold(2, kernel_size, 1)  # (B, 2, L, kernel)
        location = F.linear(windows.transpose(1, 2).flatten(2), location_weight)
        hidden = torch.tanh(location + processed_memory + self.query_layer(query).unsqueeze(1))
        energies = self.v(hidden).squeeze(2).float()
        return torch.softmax(energies.masked_fill(padding, float("-inf")), dim=1)
