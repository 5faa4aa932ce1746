"""Tacotron 2's decoder: one mel frame per step, from the previous frame and the text that it attends to."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.nn.layers import Dropout, mask_from_lengths
from tacotron2.config import ModelConfig
from tacotron2.layers import Attention, Linear
from tacotron2.teacher_forcing import LoopWeights, run_loop

PRENET_DROPOUT = 0.5  # at inference too: without it the decoder repeats its last frame
PRENET_LAYERS = 2
MASK_CHUNK = 64  # steps whose prenet masks are drawn at once


class PrenetMasks:
    """Seeded dropout masks for decoding, the same for every utterance in any batch."""

    def __init__(self, width: int, *, seed: int) -> None:
        self._width = width
        self._generator = torch.Generator().manual_seed(seed)

    def draw(self, device: torch.device) -> Tensor:
        """Draw the next steps' factors (steps, layers, 1, width), each 0 or 1 / (1 - p)."""
        shape = (MASK_CHUNK, PRENET_LAYERS, 1, self._width)
        # Drawn on the CPU in chunks of one size, so that every device gets the same masks.
        kept = torch.rand(shape, generator=self._generator) >= PRENET_DROPOUT
        return (kept / (1 - PRENET_DROPOUT)).to(device, non_blocking=True)

    def first(self, n_steps: int, device: torch.device) -> Tensor:
        """Return the factors (n_steps, layers, 1, width) of the first steps."""
        drawn = [self.draw(torch.device("cpu")) for _ in range(0, n_steps, MASK_CHUNK)]
        return torch.cat(drawn)[:n_steps].to(device, non_blocking=True)


class Prenet(nn.Module):
    """Two layers applied to the previous frame, with dropout at inference too (Shen et al. 2018, section 2.2)."""

    def __init__(self, n_mels: int, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Linear(n, width, bias=False) for n in (n_mels, *[width] * (PRENET_LAYERS - 1)))
        self.dropout = Dropout(PRENET_DROPOUT)

    def forward(self, frames: Tensor, masks: Tensor | None) -> Tensor:
        """frames (..., n_mels) -> (..., width); ``masks`` (..., layers, B or 1, width) replace random dropout."""
        for index, layer in enumerate(self.layers):
            frames = torch.relu(layer(frames))
            frames = self.dropout(frames) if masks is None else frames * masks[..., index, :, :].to(frames.dtype)
        return frames


class Decoder(nn.Module):
    """Prenet, attention LSTM, attention, decoder LSTM, and projections to the next frame and the gate."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.n_mels, memory_dim = config.n_mel_channels, config.encoder_embedding_dim
        n_states = config.decoder_rnn_dim + memory_dim
        self.n_recurrent = memory_dim + config.attention_rnn_dim  # inputs of the attention LSTM except the prenet's
        attention = Attention(config)  # initialized first, so that seeds still give the same weights
        self.prenet = Prenet(self.n_mels, config.prenet_dim)
        self.attention_rnn = nn.LSTMCell(config.prenet_dim + memory_dim, config.attention_rnn_dim)
        self.attention_layer = attention
        self.decoder_rnn = nn.LSTMCell(config.attention_rnn_dim + memory_dim, config.decoder_rnn_dim)
        self.linear_projection = Linear(n_states, self.n_mels)
        self.gate_layer = Linear(n_states, 1, gain="sigmoid")
        self.attention_dropout = Dropout(config.p_attention_dropout)
        self.decoder_dropout = Dropout(config.p_decoder_dropout)

    def forward(
        self, memory: Tensor, padding: Tensor, frames: Tensor, masks: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return mels (B, n_mels, F), gate logits (B, F) and alignments (B, F, L) float32, with teacher forcing.

        ``frames`` (B, n_mels, F), memory (B, L, memory_dim), padding (B, L) bool. ``masks`` (F, layers, B or 1,
        prenet_dim) replace random dropout.
        """
        previous = F.pad(frames, (1, -1)).permute(2, 0, 1)  # (F, B, n_mels), zeros before the first frame
        prenet, processed = self.prenet(previous, masks), self.attention_layer.memory_layer(memory)
        with torch.autocast(memory.device.type, enabled=False):
            weights = self.step_weights(processed.dtype)  # autocast's dtype, if enabled
            for_prenet, for_loop = weights["attention_rnn"].split([prenet.size(2), self.n_recurrent], 1)
            gates = F.linear(prenet.to(processed.dtype), for_prenet, weights["attention_bias"])
            states, alignments = run_loop(
                gates,
                memory.to(processed.dtype),
                processed,
                padding,
                LoopWeights(for_loop, *(weights[name] for name in LoopWeights._fields[1:])),
                attention_masks=self._factors(self.attention_dropout, gates, self.attention_rnn.hidden_size),
                decoder_masks=self._factors(self.decoder_dropout, gates, self.decoder_rnn.hidden_size),
            )
        states = states.transpose(0, 1)  # (B, F, decoder_rnn_dim + memory_dim)
        mel = self.linear_projection(states).transpose(1, 2)
        return mel, self.gate_layer(states).squeeze(2), alignments.transpose(0, 1)

    def step_weights(self, dtype: torch.dtype) -> dict[str, Tensor]:
        """Return a step's weights by name, in one dtype; those with the same inputs are joined (see `DecoderStep`)."""
        layer, first, second = self.attention_layer, self.attention_rnn, self.decoder_rnn
        weights = {
            "attention_rnn": torch.cat([first.weight_ih, first.weight_hh], 1),
            "attention_bias": first.bias_ih + first.bias_hh,
            "query": layer.query_layer.linear_layer.weight,
            "location": layer.location_layer.folded_weight(),
            "energy": layer.v.linear_layer.weight[0],
            "decoder_rnn": torch.cat([second.weight_ih, second.weight_hh], 1),
            "decoder_bias": second.bias_ih + second.bias_hh,
        }
        return {name: weight.to(dtype) for name, weight in weights.items()}

    @staticmethod
    def _factors(dropout: Dropout, gates: Tensor, width: int) -> Tensor | None:
        """Return dropout factors (F, B, width) for all steps; None without dropout."""
        if not dropout.training or dropout.p == 0:
            return None
        return dropout(gates.new_ones(*gates.shape[:2], width))


class DecoderStep(nn.Module):
    """One decoder step, with weights in one dtype; ``forward`` computes the next frame."""

    prenet_0: Tensor  # (prenet_dim, n_mels)
    prenet_1: Tensor  # (prenet_dim, prenet_dim)
    attention_rnn: Tensor  # (4 * H, prenet_dim + memory_dim + H)
    attention_bias: Tensor  # (4 * H,)
    query: Tensor  # (A, H)
    location: Tensor  # (A, 2, kernel)
    energy: Tensor  # (A,)
    decoder_rnn: Tensor  # (4 * D, H + memory_dim + D)
    decoder_bias: Tensor  # (4 * D,)
    projection: Tensor  # (n_mels + 1, D + memory_dim), for the frame and the gate's logit
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
        """Return the gate's logit (B,), then the states for the next step, the frame first.

        prenet_masks (2, B or 1, prenet_dim), frame (B, n_mels), states (B, ...), attention weights and their sum
        (B, L), memory (B, L, memory_dim), processed_memory (B, A, L), lengths (B,). Cells and weights are float32.
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
    """Return an LSTM's output and next cell (B, H), from gates (B, 4 * H) before activation and cell (B, H)."""
    raw = gates.to(cell.dtype)
    input_gate, forget, _, output_gate = torch.sigmoid(raw).chunk(4, 1)  # one operation; the third is unused
    cell = torch.addcmul(forget * cell, input_gate, torch.tanh(raw.chunk(4, 1)[2]))
    return (output_gate * torch.tanh(cell)).to(gates.dtype), cell
