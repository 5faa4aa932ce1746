"""One step of Tacotron 2's decoder as a function of tensors: what inference runs, and what is exported."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.nn.layers import mask_from_lengths
from tacotron2.decoder import Decoder


class DecoderStep(nn.Module):
    """A decoder's weights in one dtype, as far as a step needs them; ``forward`` computes the next frame."""

    prenet_0: Tensor  # (prenet_dim, n_mels)
    prenet_1: Tensor  # (prenet_dim, prenet_dim)
    attention_rnn: Tensor  # (4 * H, prenet_dim + memory_dim + H)
    attention_bias: Tensor  # (4 * H,)
    query: Tensor  # (A, H)
    location: Tensor  # (A, 2, kernel)
    energy: Tensor  # (A,)
    decoder_rnn: Tensor  # (4 * D, H + memory_dim + D)
    decoder_bias: Tensor  # (4 * D,)
    projection: Tensor  # (n_mels + 1, D + memory_dim), of frame and gate's logit
    projection_bias: Tensor  # (n_mels + 1,)

    def __init__(self, decoder: Decoder, dtype: torch.dtype) -> None:
        super().__init__()
        weights = decoder.step_weights(dtype)
        weights["location"] = weights["location"].unflatten(1, (2, -1))
        for index, layer in enumerate(decoder.prenet.layers):
            weights[f"prenet_{index}"] = layer.get_parameter("linear_layer.weight")
        projections = decoder.linear_projection.linear_layer, decoder.gate_layer.linear_layer
        weights["projection"] = torch.cat([one.weight for one in projections])
        weights["projection_bias"] = torch.cat([one.bias for one in projections])
        for name, weight in weights.items():
            self.register_buffer(name, weight.detach().to(dtype, copy=True))

    def forward(
        self,
        prenet_masks: Tensor,
        frame: Tensor,
        attention_hidden: Tensor,
        attention_cell: Tensor,
        decoder_hidden: Tensor,
        decoder_cell: Tensor,
        context: Tensor,
        attention_weights: Tensor,
        attention_weights_sum: Tensor,
        memory: Tensor,
        processed_memory: Tensor,
        lengths: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The gate's logit (B,), then all states of the next step, the frame first.

        prenet_masks (2, B or 1, prenet_dim), frame (B, n_mels), states (B, ...), attention weights and their sum so far
        (B, L), memory (B, L, memory_dim), processed_memory (B, A, L), lengths (B,). Cells and attention weights are
        float32, all else has the dtype of the weights.
        """
        prenet = torch.relu(F.linear(frame, self.prenet_0)) * prenet_masks[0]
        prenet = torch.relu(F.linear(prenet, self.prenet_1)) * prenet_masks[1]
        inputs = torch.cat([prenet, context, attention_hidden], 1)
        gates = F.linear(inputs, self.attention_rnn, self.attention_bias)
        attention_hidden, attention_cell = apply_gates(gates, attention_cell)
        history = torch.stack([attention_weights, attention_weights_sum], 1).to(memory.dtype)
        located = F.conv1d(history, self.location, padding=self.location.size(2) // 2)
        query = F.linear(attention_hidden, self.query).unsqueeze(2)
        energies = torch.matmul(self.energy, torch.tanh(query + located + processed_memory)).to(attention_weights.dtype)
        padding = ~mask_from_lengths(lengths, memory.size(1))
        attention_weights = torch.softmax(energies.masked_fill(padding, float("-inf")), 1)
        context = torch.bmm(attention_weights.to(memory.dtype).unsqueeze(1), memory).squeeze(1)
        inputs = torch.cat([attention_hidden, context, decoder_hidden], 1)
        decoder_hidden, decoder_cell = apply_gates(F.linear(inputs, self.decoder_rnn, self.decoder_bias), decoder_cell)
        output = F.linear(torch.cat([decoder_hidden, context], 1), self.projection, self.projection_bias)
        return (
            output[:, -1],
            output[:, :-1],
            attention_hidden,
            attention_cell,
            decoder_hidden,
            decoder_cell,
            context,
            attention_weights,
            attention_weights_sum + attention_weights,
        )


def apply_gates(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """An LSTM's output (B, H) and next cell (B, H): gates (B, 4 * H) before their activation, cell (B, H)."""
    raw = gates.to(cell.dtype)
    input_gate, forget, _, output_gate = torch.sigmoid(raw).chunk(4, 1)  # one operation; the candidate's is not used
    cell = torch.addcmul(forget * cell, input_gate, torch.tanh(raw.chunk(4, 1)[2]))
    return (output_gate * torch.tanh(cell)).to(gates.dtype), cell
