"""The decoder's loop over given frames, with a backward pass written by hand.

Plain autograd through the same loop takes 3.1 times as long, under `torch.compile` too (full size, batch 4, 30 frames,
one thread; 4.6 times for batch 1), and keeps 2.2 times the memory (docs/BENCHMARKS.md). The reasons: each weight's
gradient is one matrix product over all steps after the loop, instead of one a step, and the attention's hidden layer,
most of the memory, is recomputed instead of kept. Autograd with small functions for these two things alone was measured
to keep less than half of the gain. `tests/test_tacotron2_loop.py` compares outputs and gradients with plain autograd.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from common.nn.layers import never_compiled


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
    """An LSTM's activations over all steps, and its part of each step.

    On a GPU, PyTorch's fused cell makes them, in float32; elsewhere they are computed in place.
    """

    def __init__(self, n_steps: int, like: Tensor, *, keep: bool, n_batch: int, n_inputs: int, n_hidden: int) -> None:
        """Without ``keep`` the steps share the buffer of their gates, which a backward pass needs."""
        self.n_hidden, self.keep, self.fused = n_hidden, keep, like.is_cuda
        self.inputs = like.new_zeros(n_steps + 1, n_batch, n_inputs)
        # By step: input, forget, candidate, output, activated (B, 4 * H); float32 (B, H), from that before the first.
        self.gates: list[Tensor] = []
        if not self.fused:
            self.gates = list(like.new_empty(n_steps if keep else 1, n_batch, 4 * n_hidden)) * (1 if keep else n_steps)
        n_cells = 1 if self.fused else n_steps + 1
        self.cells = list(like.new_zeros(n_cells, n_batch, n_hidden, dtype=torch.float32))

    def step(self, step: int, added: Tensor, weight: Tensor, mask: Tensor | None, *, first: int = 0) -> Tensor:
        """Output (B, H) of a step whose inputs, from the ``first``, are ready."""
        inputs, size = self.inputs[step][:, first:], self.n_hidden
        if self.fused:
            product = torch.mm(inputs, weight.t()).float()
            cell_of = torch.ops.aten._thnn_fused_lstm_cell
            output, cell, gates = cell_of(added.float(), product, self.cells[step])
            self.cells.append(cell)
            self.gates += [gates] if self.keep else []
            return output if mask is None else output.mul_(mask)
        gates, cell = self.gates[step], self.cells[step + 1]
        torch.addmm(added, inputs, weight.t(), out=gates)
        gates[:, : 2 * size].sigmoid_()
        gates[:, 2 * size : 3 * size].tanh_()
        gates[:, 3 * size :].sigmoid_()
        input_gate, forget, candidate, output_gate = gates.view(-1, 4, size).unbind(1)
        torch.mul(self.cells[step], forget, out=cell)
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


class _Forward:
    """The loop forwards, with all that its backward pass reads.

    The attention does not read the decoder's LSTM, which therefore runs after it: `attend` in all steps, then `decode`.
    """

    def __init__(
        self, weights: StepWeights, memory: Tensor, processed: Tensor, padding: Tensor, *, n_steps: int, keep: bool
    ) -> None:
        n_batch, self.memory_dim = memory.size(0), memory.size(2)
        self.n_steps, self.n_decoder = n_steps, len(weights.decoder_bias) // 4
        n_attention = weights.query.size(1)
        self.weights, self.memory, self.padding = weights, memory, padding
        n_inputs = self.memory_dim + n_attention
        lstm = partial(Lstm, n_steps, memory, keep=keep, n_batch=n_batch)
        self.attention = lstm(n_inputs=n_inputs, n_hidden=n_attention)
        self.decoder = lstm(n_inputs=n_inputs + self.n_decoder, n_hidden=self.n_decoder)
        self.energies = Energies(processed, weights.location, weights.energy)
        self._kept = torch.arange(2.0, device=memory.device).unsqueeze(1)  # of the history, when new weights are added

    def attend(self, step: int, gates: Tensor, mask: Tensor | None, *, alignment: Tensor) -> None:
        """Compute a step's attention weights, which go to ``alignment`` (B, L) float32, and what the next one reads.

        ``gates`` (B, 4 * n_attention) is what prenet and biases add to the attention LSTM's.
        """
        weights, history, inputs = self.weights, self.energies.inside, self.attention.inputs[step + 1]
        inputs[:, self.memory_dim :] = self.attention.step(step, gates, weights.attention_rnn, mask)
        energies = self.energies.compute(inputs[:, self.memory_dim :] @ weights.query.t()).float()
        torch.softmax(energies.masked_fill_(self.padding, float("-inf")), 1, out=alignment)
        torch.addcmul(alignment.unsqueeze(1), history, self._kept, out=history)
        inputs[:, : self.memory_dim] = torch.bmm(alignment.to(self.memory.dtype).unsqueeze(1), self.memory).squeeze(1)

    def decode(self, masks: Tensor | None) -> Tensor:
        """States (n_steps, B, n_decoder + memory_dim) of all steps, after they have attended."""
        n_steps, own, lstm, weight = self.n_steps, -self.n_decoder, self.decoder, self.weights.decoder_rnn
        context, attended = self.attention.inputs[1:].tensor_split([self.memory_dim], 2)
        torch.cat([attended, context], 2, out=lstm.inputs[:n_steps, :, :own])
        added = F.linear(lstm.inputs[:n_steps, :, :own], weight[:, :own], self.weights.decoder_bias)
        added, recurrent = added.float() if lstm.fused else added, weight[:, own:].contiguous()
        for step in range(n_steps):
            mask = None if masks is None else masks[step]
            output = lstm.step(step, added[step], recurrent, mask, first=lstm.inputs.size(2) + own)
            lstm.inputs[step + 1][:, own:] = output
        return torch.cat([lstm.inputs[1:, :, own:], context], 2)


@never_compiled  # a graph of all steps would take longer to compile than a model to train
def run_loop(
    gates: Tensor,
    memory: Tensor,
    processed: Tensor,
    padding: Tensor,
    weights: StepWeights,
    *,
    attention_masks: Tensor | None,
    decoder_masks: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """All steps of the decoder -> states (F, B, D + memory_dim), alignments (F, B, L) float32.

    gates (F, B, 4 * H): what prenet and biases add to the attention LSTM's; memory (B, L, memory_dim), processed
    (B, L, A), padding (B, L) bool; masks: dropout factors (F, B, H) and (F, B, D) of the two LSTMs' outputs, or None.
    A step's state is the decoder LSTM's output and the context. All of one dtype.
    """
    keep = torch.is_grad_enabled()
    return _Loop.apply(keep, padding, attention_masks, decoder_masks, gates, memory, processed, *weights.tensors())


class _Loop(torch.autograd.Function):
    """The loop of `run_loop`."""

    @staticmethod
    def forward(
        ctx: Any,
        keep: bool,
        padding: Tensor,
        attention_masks: Tensor | None,
        decoder_masks: Tensor | None,
        gates: Tensor,
        memory: Tensor,
        processed: Tensor,
        *tensors: Tensor,
    ) -> tuple[Tensor, Tensor]:
        n_steps = len(gates)
        one = _Forward(StepWeights(*tensors), memory, processed, padding, n_steps=n_steps, keep=keep)
        alignments = memory.new_empty(n_steps, *padding.shape, dtype=torch.float32)
        gates = gates.float() if one.attention.fused else gates
        for step in range(n_steps):
            mask = None if attention_masks is None else attention_masks[step]
            one.attend(step, gates[step], mask, alignment=alignments[step])
        states = one.decode(decoder_masks)
        if keep:
            ctx.lstms = one.attention, one.decoder
            ctx.save_for_backward(alignments, attention_masks, decoder_masks, memory, processed, *tensors)
            ctx.set_materialize_grads(False)
        return states, alignments

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d_states: Tensor | None, d_alignments: Tensor | None) -> tuple[Tensor | None, ...]:
        alignments, attention_masks, decoder_masks, memory, processed, *tensors = ctx.saved_tensors
        weights = StepWeights(*tensors)
        (attention, decoder), ctx.lstms = ctx.lstms, None
        n_steps, memory_dim = len(alignments), memory.size(2)
        n_attention, n_decoder = attention.n_hidden, decoder.n_hidden
        attended = decoder.inputs[:n_steps, :, :n_attention]
        queries = attended @ weights.query.t()
        energies = Energies(processed, weights.location, weights.energy)
        back = _EnergiesBack(energies)
        attention_back, decoder_back = _LstmBack(attention, memory.dtype), _LstmBack(decoder, memory.dtype)
        if d_states is None:
            d_states = memory.new_zeros(n_steps, len(memory), n_decoder + memory_dim)
        recurrent = weights.decoder_rnn[:, -n_decoder:].contiguous()
        d_after = memory.new_zeros(len(memory), n_decoder)  # of the decoder LSTM's output, from the following step
        for step in reversed(range(n_steps)):
            d_output = d_states[step, :, :n_decoder] + d_after
            if decoder_masks is not None:
                d_output.mul_(decoder_masks[step])
            d_after = decoder_back.step(step, d_output) @ recurrent
        decoder_gates = decoder_back.gates()
        d_read = decoder_gates @ weights.decoder_rnn[:, :-n_decoder]
        d_queries, d_contexts = torch.empty_like(queries), d_states[:, :, n_decoder:] + d_read[:, :, n_attention:]
        history = torch.stack([alignments, alignments.cumsum(0)], 2).roll(1, 0)  # of the step before
        history[0] = 0
        # Gradients from the following step: of the attention LSTM's inputs, and of the attention's history.
        d_inputs_after = memory.new_zeros(len(memory), attention.inputs.size(2))
        d_last, d_total = torch.zeros_like(alignments[0]), torch.zeros_like(alignments[0])
        for step in reversed(range(n_steps)):
            d_context = d_contexts[step]
            d_context += d_inputs_after[:, :memory_dim]
            d_alignment = torch.bmm(memory, d_context.unsqueeze(2)).squeeze(2) + d_last
            if d_alignments is not None:
                d_alignment += d_alignments[step]
            d_alignment = d_alignment.float()
            d_energies = torch._softmax_backward_data(d_alignment, alignments[step], 1, torch.float32)
            energies.inside.copy_(history[step])
            d_history = back.step(queries[step], d_energies.to(memory.dtype), d_query=d_queries[step])
            d_total += d_history[:, 1]
            d_last = d_history[:, 0] + d_total
            d_attended = d_read[step, :, :n_attention] + d_inputs_after[:, memory_dim:]
            d_attended.addmm_(d_queries[step], weights.query)
            if attention_masks is not None:
                d_attended.mul_(attention_masks[step])
            d_inputs_after = attention_back.step(step, d_attended) @ weights.attention_rnn
        d_memory = torch.bmm(alignments.permute(1, 2, 0).to(memory.dtype), d_contexts.transpose(0, 1))
        attention_gates = attention_back.gates()
        d_weights = StepWeights(
            attention_rnn=_weight_gradient(attention_gates, attention.inputs[:n_steps]),
            decoder_rnn=_weight_gradient(decoder_gates, decoder.inputs[:n_steps]),
            decoder_bias=decoder_gates.sum((0, 1)),
            query=_weight_gradient(d_queries, attended),
            location=back.d_location,
            energy=back.d_energy,
        )
        inputs = (attention_gates, d_memory, back.d_processed.view_as(processed))
        return None, None, None, None, *inputs, *d_weights.tensors()


class _LstmBack:
    """An LSTM backwards, from the last step to the first."""

    def __init__(self, lstm: Lstm, dtype: torch.dtype) -> None:
        self._lstm, self._dtype = lstm, dtype
        self._d_cell = torch.zeros_like(lstm.cells[0])  # of the cell after the step
        self._d_gates: list[Tensor] = []  # with a fused cell, from the last step
        if not lstm.fused:
            self._slopes, self._by_cell, self._forget = lstm.slopes()

    def step(self, step: int, d_output: Tensor) -> Tensor:
        """Gradients of the gates (B, 4 * H) by that of the step's output (B, H)."""
        lstm, d_cell = self._lstm, self._d_cell
        if lstm.fused:
            activations = lstm.cells[step], lstm.cells[step + 1], lstm.gates[step]
            cell_back = torch.ops.aten._thnn_fused_lstm_cell_backward_impl
            d_gates, self._d_cell, _ = cell_back(d_output.float(), d_cell, *activations, False)
            self._d_gates.append(d_gates.to(self._dtype))
            return self._d_gates[-1]
        slopes, cell_slope = self._slopes[step], self._by_cell[step]
        if d_output.dtype == d_cell.dtype:
            d_cell.addcmul_(d_output, cell_slope)
        else:
            d_cell.add_(d_output * cell_slope)
        slopes[:, :3].mul_(d_cell.unsqueeze(1))
        slopes[:, 3].mul_(d_output)
        d_cell.mul_(self._forget[step])
        return slopes.view(len(slopes), -1)

    def gates(self) -> Tensor:
        """Gradients of the gates of all steps, (F, B, 4 * H), after the first step."""
        return torch.stack(self._d_gates[::-1]) if self._lstm.fused else self._slopes.flatten(2)


def _weight_gradient(d_outputs: Tensor, inputs: Tensor) -> Tensor:
    """Gradient (out, in) of a weight, from all steps at once: d_outputs (F, B, out), inputs (F, B, in)."""
    return d_outputs.flatten(0, 1).t() @ inputs.flatten(0, 1)


class _EnergiesBack:
    """The attention's energies backwards: accumulates gradients of weights, returns those of query and history."""

    def __init__(self, forward: Energies) -> None:
        n_batch, n_tokens, _, kernel_size = forward.windows.shape
        width = forward.hidden.size(1)
        half = kernel_size // 2
        self.forward = forward
        self.d_processed = torch.zeros_like(forward.processed)
        self.d_location = torch.zeros_like(forward.location)
        self.d_energy = torch.zeros_like(forward.energy)
        self._d_hidden = torch.empty_like(forward.hidden)
        # A token of the history lies in kernel_size windows, each time at another place: its gradient is the sum over
        # a diagonal of (token, place). With the kernel reversed that diagonal runs down to the right, and as_strided
        # reads it as a row (stride + 1), without a scatter or a transposed convolution a step.
        self._reversed = forward.location.view(width, 2, kernel_size).flip(2).reshape(width, -1)
        padded = forward.windows.new_zeros(n_batch, n_tokens + 2 * half, 2, kernel_size)
        self._d_windows = padded[:, half : half + n_tokens]
        per_batch, per_token, per_channel, _ = padded.stride()
        self._diagonals = padded.as_strided(
            (n_batch, 2, n_tokens, kernel_size), (per_batch, per_channel, per_token, per_token + 1)
        )

    def step(self, query: Tensor, d_energies: Tensor, *, d_query: Tensor) -> Tensor:
        """query (B, A), d_energies (B, L) -> d_history (B, 2, L), for `Energies.inside` as it is.

        The query's gradient goes to ``d_query`` (B, A).
        """
        forward, d_hidden = self.forward, self._d_hidden
        hidden = forward.compute_hidden(query)
        n_batch, n_tokens = d_energies.shape
        flat = d_energies.reshape(-1)
        self.d_energy.addmv_(hidden.t(), flat)
        torch.mul(flat.unsqueeze(1), forward.energy, out=d_hidden)
        torch.ops.aten.tanh_backward.grad_input(d_hidden, hidden, grad_input=d_hidden)
        self.d_processed.add_(d_hidden)
        self.d_location.addmm_(d_hidden.t(), forward.windows.view(len(hidden), -1))
        self._d_windows.copy_((d_hidden @ self._reversed).view(n_batch, n_tokens, 2, -1))
        torch.sum(d_hidden.view(n_batch, n_tokens, -1), 1, out=d_query)
        return self._diagonals.sum(3)
