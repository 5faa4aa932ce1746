"""One step of Tacotron 2's decoder on preallocated buffers, for training and inference alike.

In place, so that inference can record a step as a CUDA graph and `tacotron2.teacher_forcing` can keep all steps.
"""

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
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
    """An LSTM's activations over all steps, or over the current one alone, and its part of each step.

    On a GPU, PyTorch's fused cell makes them, in float32; elsewhere they are computed in place.
    """

    def __init__(self, n_slots: int, like: Tensor, *, keep: bool, n_batch: int, n_inputs: int, n_hidden: int) -> None:
        """Without ``keep`` the steps share the buffer of their gates, which a backward pass needs."""
        self.n_hidden, self.keep, self.fused = n_hidden, keep, like.is_cuda
        self.inputs = like.new_zeros(n_slots + 1, n_batch, n_inputs)
        # By step: input, forget, candidate, output, activated (B, 4 * H); float32 (B, H), from that before the first.
        self.gates: list[Tensor] = []
        if not self.fused:
            self.gates = list(like.new_empty(n_slots if keep else 1, n_batch, 4 * n_hidden)) * (1 if keep else n_slots)
        n_cells = 1 if self.fused else n_slots + 1
        self.cells = list(like.new_zeros(n_cells, n_batch, n_hidden, dtype=torch.float32))

    def step(
        self, slot: int, following: int, added: Tensor, weight: Tensor, mask: Tensor | None, *, first: int = 0
    ) -> Tensor:
        """Output (B, H) of the step whose inputs, from the ``first``, are in ``slot``.

        The new cell state goes to ``following``, the next slot or, where nothing is kept, the same.
        """
        inputs, size = self.inputs[slot][:, first:], self.n_hidden
        if self.fused:
            product = torch.mm(inputs, weight.t()).float()
            cell_of = torch.ops.aten._thnn_fused_lstm_cell
            output, cell, gates = cell_of(added.float(), product, self.cells[slot])
            if following == slot:
                self.cells[slot].copy_(cell)
            else:
                self.cells.append(cell)
                self.gates += [gates] if self.keep else []
            return output if mask is None else output.mul_(mask)
        gates, cell = self.gates[slot], self.cells[following]
        torch.addmm(added, inputs, weight.t(), out=gates)
        gates[:, : 2 * size].sigmoid_()
        gates[:, 2 * size : 3 * size].tanh_()
        gates[:, 3 * size :].sigmoid_()
        input_gate, forget, candidate, output_gate = gates.view(-1, 4, size).unbind(1)
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
        gates, cells = torch.stack(self.gates), torch.stack(self.cells)
        input_gate, forget, candidate, output_gate = gates.unflatten(2, (4, self.n_hidden)).unbind(2)
        squashed = torch.tanh(cells[1:]).to(output_gate.dtype)
        before = cells[:-1].to(output_gate.dtype)
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
        # The last attention weights, and the sum of all so far.
        self.history = processed.new_zeros(n_batch, 2, n_tokens + 2 * half, dtype=torch.float32)
        self.inside = self.history[:, :, half : half + n_tokens]
        self.windows = processed.new_empty(n_batch, n_tokens, 2, self.kernel_size)
        self.hidden = processed.new_empty(n_batch * n_tokens, width)

    def compute(self, query: Tensor) -> Tensor:
        """query (B, A) -> energies (B, L); `inside` must hold the history."""
        return torch.mv(self.compute_hidden(query), self.energy).view(self.windows.shape[:2])

    def compute_hidden(self, query: Tensor) -> Tensor:
        """query (B, A) -> the hidden layer (B * L, A)."""
        n_batch, n_tokens = self.windows.shape[:2]
        self.windows.copy_(self.history.unfold(2, self.kernel_size, 1).transpose(1, 2))
        torch.addmm(self.processed, self.windows.view(len(self.hidden), -1), self.location.t(), out=self.hidden)
        self.hidden.view(n_batch, n_tokens, -1).add_(query.unsqueeze(1)).tanh_()
        return self.hidden


class DecoderStep:
    """The decoder's state while it decodes a batch; ``advance`` computes the next frame, in place.

    `decode` needs the attention LSTM's outputs of all steps (``n_slots``), and a backward pass (``keep``) the LSTMs'
    gates and cells; `advance` can use one slot again and again.
    """

    def __init__(
        self,
        weights: StepWeights,
        memory: Tensor,
        processed: Tensor,
        padding: Tensor,
        *,
        n_slots: int,
        keep: bool = False,
    ) -> None:
        """memory (B, L, memory_dim), processed (B, L, A), of the weights' dtype; padding (B, L) bool."""
        n_batch, self.memory_dim = memory.size(0), memory.size(2)
        self.n_attention, self.n_decoder = weights.query.size(1), len(weights.decoder_bias) // 4
        self.weights, self.memory, self.padding = weights, memory, padding
        n_inputs = self.memory_dim + self.n_attention
        lstm = partial(Lstm, n_slots, memory, keep=keep, n_batch=n_batch)
        self.attention = lstm(n_inputs=n_inputs, n_hidden=self.n_attention)
        self.decoder = lstm(n_inputs=n_inputs + self.n_decoder, n_hidden=self.n_decoder)
        self.energies = Energies(processed, weights.location, weights.energy)
        self._kept = torch.arange(2.0, device=memory.device).unsqueeze(1)  # of the history, when new weights are added

    @property
    def total(self) -> Tensor:
        """The sum (B, L) of all attention weights so far."""
        return self.energies.inside[:, 1]

    def reset(self) -> None:
        """Return to the state before the first step."""
        for lstm in (self.attention, self.decoder):
            lstm.inputs.zero_()
            for cell in lstm.cells:
                cell.zero_()
        self.energies.history.zero_()

    def attend(
        self, slot: int, following: int, gates: Tensor, *, alignment: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Context and attention LSTM's output (B, memory_dim + n_attention), which the next step reads, as `advance`.

        The attention weights go to ``alignment``.
        """
        weights, history = self.weights, self.energies.inside
        inputs = self.attention.inputs[following]
        inputs[:, self.memory_dim :] = self.attention.step(slot, following, gates, weights.attention_rnn, mask)
        energies = self.energies.compute(inputs[:, self.memory_dim :] @ weights.query.t()).float()
        torch.softmax(energies.masked_fill_(self.padding, float("-inf")), 1, out=alignment)
        torch.addcmul(alignment.unsqueeze(1), history, self._kept, out=history)
        inputs[:, : self.memory_dim] = torch.bmm(alignment.to(self.memory.dtype).unsqueeze(1), self.memory).squeeze(1)
        return inputs

    def advance(self, slot: int, following: int, gates: Tensor, *, state: Tensor, alignment: Tensor) -> None:
        """Write the step's ``state`` (B, n_decoder + memory_dim) and attention weights ``alignment`` (B, L) float32.

        ``gates`` (B, 4 * n_attention) is what prenet and biases add to the attention LSTM's. ``slot`` is the step's
        slot, ``following`` that of the next step.
        """
        weights, n_attention = self.weights, self.n_attention
        context, attended = self.attend(slot, following, gates, alignment=alignment).tensor_split([self.memory_dim], 1)
        state[:, self.n_decoder :] = context
        inputs = self.decoder.inputs[slot]
        inputs[:, :n_attention] = attended
        inputs[:, n_attention : -self.n_decoder] = context
        output = self.decoder.step(slot, following, weights.decoder_bias, weights.decoder_rnn, None)
        state[:, : self.n_decoder] = output
        self.decoder.inputs[following][:, -self.n_decoder :] = output

    def decode(self, n_steps: int, masks: Tensor | None) -> Tensor:
        """States (n_steps, B, n_decoder + memory_dim) of steps that have attended, each kept in a slot."""
        own, lstm, weight = -self.n_decoder, self.decoder, self.weights.decoder_rnn
        context, attended = self.attention.inputs[1:].tensor_split([self.memory_dim], 2)
        torch.cat([attended, context], 2, out=lstm.inputs[:n_steps, :, :own])
        added = F.linear(lstm.inputs[:n_steps, :, :own], weight[:, :own], self.weights.decoder_bias)
        added, recurrent = added.float() if lstm.fused else added, weight[:, own:].contiguous()
        for step in range(n_steps):
            mask = None if masks is None else masks[step]
            output = lstm.step(step, step + 1, added[step], recurrent, mask, first=lstm.inputs.size(2) + own)
            lstm.inputs[step + 1][:, own:] = output
        return torch.cat([lstm.inputs[1:, :, own:], context], 2)
