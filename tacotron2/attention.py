"""Location-sensitive attention (Chorowski et al. 2015, section 2.2), as Tacotron 2 uses it."""

from torch import Tensor, nn

from tacotron2.layers import Convolution, Linear


class LocationLayer(nn.Module):
    """Features of the last and the summed attention weights: a convolution and a linear layer, applied as one."""

    def __init__(self, attention_dim: int, *, n_filters: int, kernel_size: int) -> None:
        super().__init__()
        self.location_conv = Convolution(2, n_filters, kernel_size=kernel_size, bias=False)
        self.location_dense = Linear(n_filters, attention_dim, bias=False, gain="tanh")

    def folded_weight(self) -> Tensor:
        """Both layers as one weight, (attention_dim, 2 * kernel_size): no activation lies between them."""
        return self.location_dense.linear_layer.weight @ self.location_conv.conv.weight.flatten(1)


class Attention(nn.Module):
    """The layers of the attention over the text; `tacotron2.step.Energies` applies them."""

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
