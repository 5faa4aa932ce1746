"""One step of Tacotron 2's decoder on preallocated buffers, for training and inference alike.

In place, so that inference can record a step as a CUDA graph and `tacotron2.teacher_forcing` can keep all steps.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class StepWeights:
    """The weights that every step uses, all of one dtype."""

    attention_rnn: Tensor  # (4 * H, memory_dim + H), of context and own state; the prenet's part is applied before
    decoder_rnn: Tensor  # (4 * D, H + memory_dim + D), of attention state, context and own state
    decoder_bias: Tensor  # (4 * D,)
    query: Tensor  # (A, H)
    location: Tensor  # (A, 2 * kernel)
    energy: Tensor  # (A,)

    def tensors(self) -> tuple[Tensor, ...]:
        """All of them, in order."""
        return tuple(vars(self).values())


class Lstm:
    """An LSTM's activations over all steps, or over the current one alone, and its part of each step."""

    def __init__(self, n_slots: int, like: Tensor, *, n_batch: int, n_inputs: int, n_hidden: int) -> None:
        self.n_hidden = n_hidden
        self.inputs = like.new_zeros(n_slots + 1, n_batch, n_inputs)
        self.gates = like.new_empty(n_slots, n_batch, 4 * n_hidden)  # input, forget, candidate, output; activated
        self.cells = like.new_zeros(n_slots + 1, n_batch, n_hidden, dtype=torch.float32)

    def step(self, slot: int, following: int, added: Tensor, weight: Tensor, mask: Tensor | None) -> Tensor:
        """Output (B, H) of the step whose inputs are in ``slot``; the new cell state goes to ``following``."""
        gates, size = self.gates[slot], self.n_hidden
        torch.addmm(added, self.inputs[slot], weight.t(), out=gates)
        gates[:, : 2 * size].sigmoid_()
        gates[:, 2 * size : 3 * size].tanh_()
        gates[:, 3 * size :].sigmoid_()
        input_gate, forget, candidate, output_gate = gates.view(-1, 4, size).unbind(1)
        cell = self.cells[following]
        torch.mul(self.cells[slot], forget, out=cell)
        if input_gate.dtype == cell.dtype:
            cell.addcmul_(input_gate, candidate)
        else:
            cell.add_(input_gate.float() * candidate)
        output = torch.tanh(cell).to(output_gate.dtype).mul_(output_gate)
        return output if mask is None else output.mul_(mask)

    def slopes(self) -> tuple[Tensor, Tensor, Tensor]:
        """Local derivatives for the backward pass, of all steps at once.

        (F, B, 4, H): of cell (first three) and output (last) by each gate before its activation; (F, B, H): of the
        output by the cell; (F, B, H): the forget gates, which are those of the cell by the previous cell.
        """
        input_gate, forget, candidate, output_gate = self.gates.view(*self.gates.shape[:2], 4, self.n_hidden).unbind(2)
        squashed = torch.tanh(self.cells[1:]).to(output_gate.dtype)
        before = self.cells[:-1].to(output_gate.dtype)
        by_gate = torch.stack(
            [
                candidate * input_gate * (1 - input_gate),
                before * forget * (1 - forget),
                input_gate * (1 - candidate.square()),
                squashed * output_gate * (1 - output_gate),
            ],
            dim=2,
        )
        return by_gate, output_gate * (1 - squashed.square()), forget


class Energies:
    """The attention's energies, one step at a time."""

    def __init__(self, processed: Tensor, location: Tensor, energy: Tensor) -> None:
        n_batch, n_tokens, width = processed.shape
        self.kernel_size = location.size(1) // 2
        half = self.kernel_size // 2
        self.processed, self.location, self.energy = processed.reshape(-1, width), location, energy
        self.history = processed.new_zeros(
            n_batch, 2, n_tokens + 2 * half
        )  # last attention weights, and the sum of all so far
        self.inside = self.history[:, :, half : half + n_tokens]
        self.windows = processed.new_empty(n_batch, n_tokens, 2, self.kernel_size)
        self.hidden = processed.new_empty(n_batch * n_tokens, width)

    def compute(self, query: Tensor) -> Tensor:
        """query (B, A) -> energies (B, L); `inside` must hold the history."""
        n_batch, n_tokens = self.windows.shape[:2]
        self.windows.copy_(self.history.unfold(2, self.kernel_size, 1).transpose(1, 2))
        torch.addmm(self.processed, self.windows.view(len(self.hidden), -1), self.location.t(), out=self.hidden)
        self.hidden.view(n_batch, n_tokens, -1).add_(query.unsqueeze(1)).tanh_()
        return torch.mv(self.hidden, self.energy).view(n_batch, n_tokens)


class DecoderStep:
    """The decoder's state while it decodes a batch; ``advance`` computes the next frame, in place.

    A backward pass needs the LSTMs' inputs, gates and cells of all steps (``n_slots``); otherwise one slot is reused.
    """

    def __init__(self, weights: StepWeights, memory: Tensor, processed: Tensor, padding: Tensor, n_slots: int) -> None:
        """memory (B, L, memory_dim), processed (B, L, A), of the weights' dtype; padding (B, L) bool."""
        n_batch, n_tokens, self.memory_dim = memory.shape
        self.n_attention, self.n_decoder = weights.query.size(1), len(weights.decoder_bias) // 4
        self.weights, self.memory, self.padding = weights, memory, padding
        n_inputs = self.memory_dim + self.n_attention
        self.attention = Lstm(n_slots, memory, n_batch=n_batch, n_inputs=n_inputs, n_hidden=self.n_attention)
        n_inputs += self.n_decoder
        self.decoder = Lstm(n_slots, memory, n_batch=n_batch, n_inputs=n_inputs, n_hidden=self.n_decoder)
        self.energies = Energies(processed, weights.location, weights.energy)
        self.total = memory.new_zeros(n_batch, n_tokens, dtype=torch.float32)  # sum of all weights so far

    def reset(self) -> None:
        """Return to the state before the first step."""
        for lstm in (self.attention, self.decoder):
            lstm.inputs.zero_()
            lstm.cells.zero_()
        self.energies.history.zero_()
        self.total.zero_()

    def advance(
        self,
        slot: int,
        following: int,
        gates: Tensor,
        *,
        state: Tensor,
        alignment: Tensor,
        attention_mask: Tensor | None = None,
        decoder_mask: Tensor | None = None,
    ) -> None:
        """Write the step's ``state`` (B, n_decoder + memory_dim) and attention weights ``alignment`` (B, L) float32.

        ``gates`` (B, 4 * n_attention) is what prenet and biases add to the attention LSTM's; the masks are dropout
        factors of the LSTMs' outputs. ``slot`` is the step's slot, ``following`` that of the next step.
        """
        weights, n_attention, memory_dim = self.weights, self.n_attention, self.memory_dim
        attended = self.attention.step(slot, following, gates, weights.attention_rnn, attention_mask)
        energies = self.energies.compute(attended @ weights.query.t()).float()
        torch.softmax(energies.masked_fill_(self.padding, float("-inf")), 1, out=alignment)
        self.energies.inside[:, 0] = alignment
        self.energies.inside[:, 1] = self.total.add_(alignment)
        context = torch.bmm(alignment.to(self.memory.dtype).unsqueeze(1), self.memory).squeeze(1)
        state[:, self.n_decoder :] = context
        inputs = self.attention.inputs[following]
        inputs[:, :memory_dim] = context
        inputs[:, memory_dim:] = attended
        inputs = self.decoder.inputs[slot]
        inputs[:, :n_attention] = attended
        inputs[:, n_attention : n_attention + memory_dim] = context
        output = self.decoder.step(slot, following, weights.decoder_bias, weights.decoder_rnn, decoder_mask)
        state[:, : self.n_decoder] = output
        self.decoder.inputs[following][:, n_attention + memory_dim :] = output
