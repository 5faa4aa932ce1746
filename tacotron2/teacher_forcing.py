"""The decoder's loop over given frames, with a manual backward pass.

It takes a third of autograd's time, even under `torch.compile` (docs/BENCHMARKS.md): a weight's gradient is one matrix
product over all steps, and the attention's hidden layer is recomputed instead of stored.
"""

from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from common.nn.layers import never_compiled


class LoopWeights(NamedTuple):
    """The weights that every step uses, all of one dtype."""

    attention_rnn: Tensor  # (4 * H, memory_dim + H), for context and own state; the prenet's part is applied before
    decoder_rnn: Tensor  # (4 * D, H + memory_dim + D), for attention state, context and own state
    decoder_bias: Tensor  # (4 * D,)
    query: Tensor  # (A, H)
    location: Tensor  # (A, 2 * kernel)
    energy: Tensor  # (A,)


class Lstm:
    """An LSTM's activations over all steps, and its forward and backward step."""

    def __init__(self, n_steps: int, like: Tensor, *, keep: bool, n_batch: int, n_inputs: int, n_hidden: int) -> None:
        """Without ``keep``, for only a forward pass, all steps share the gates' buffer."""
        self.n_hidden = n_hidden
        self.inputs = like.new_zeros(n_steps + 1, n_batch, n_inputs)
        # Activated input, forget, candidate and output gates
        self.gates = like.new_empty(n_steps if keep else 1, n_batch, 4 * n_hidden).expand(n_steps, -1, -1)
        self.cells = like.new_zeros(n_steps + 1, n_batch, n_hidden, dtype=torch.float32)  # the first precedes all steps
        self._by_step = list(zip(self.gates, self.cells, self.cells[1:]))

    def step(self, step: int, added: Tensor, weight: Tensor, mask: Tensor | None, *, first: int = 0) -> Tensor:
        """Return a step's output (B, H), from its inputs starting at ``first``."""
        (gates, before, cell), size = self._by_step[step], self.n_hidden
        torch.addmm(added, self.inputs[step][:, first:], weight.t(), out=gates)
        gates[:, : 2 * size].sigmoid_()
        gates[:, 2 * size : 3 * size].tanh_()
        gates[:, 3 * size :].sigmoid_()
        input_gate, forget, candidate, output_gate = gates.view(-1, 4, size).unbind(1)
        torch.mul(before, forget, out=cell)
        cell.addcmul_(input_gate.float(), candidate.float())
        output = torch.tanh(cell).to(output_gate.dtype).mul_(output_gate)
        return output if mask is None else output.mul_(mask)

    def begin_backward(self) -> None:
        """Compute the local derivatives of all steps, before `step_back`."""
        input_gate, forget, candidate, output_gate = self.gates.unflatten(2, (4, self.n_hidden)).unbind(2)
        squashed = torch.tanh(self.cells[1:]).to(output_gate.dtype)
        slopes = [
            candidate * input_gate * (1 - input_gate),
            self.cells[:-1].to(output_gate.dtype) * forget * (1 - forget),
            input_gate * (1 - candidate.square()),
            squashed * output_gate * (1 - output_gate),
        ]
        # (F, B, 4, H): derivatives of cell (first three) and output (last) with respect to each gate before its
        # activation; `step_back` replaces them by gradients of the gates.
        self.d_gates = torch.stack(slopes, dim=2)
        self._by_cell = output_gate * (1 - squashed.square())  # (F, B, H), of the output
        self._forget = forget
        self._d_cell = torch.zeros_like(self.cells[0])  # of the cell after the step

    def step_back(self, step: int, d_output: Tensor) -> Tensor:
        """Return the gates' gradients (B, 4 * H) from the output's (B, H); call it from the last step to the first."""
        d_gates, d_cell = self.d_gates[step], self._d_cell
        d_cell.addcmul_(d_output.float(), self._by_cell[step].float())
        d_gates[:, :3].mul_(d_cell.unsqueeze(1))
        d_gates[:, 3].mul_(d_output)
        d_cell.mul_(self._forget[step])
        return d_gates.flatten(1)


class Energies:
    """The attention's energies of each step, and their backward pass, which sums the weights' gradients."""

    def __init__(self, processed: Tensor, weights: LoopWeights) -> None:
        n_batch, n_tokens, width = processed.shape
        self._kernel_size = weights.location.size(1) // 2
        self._half = self._kernel_size // 2
        self._processed, self._location, self._energy = processed.reshape(-1, width), weights.location, weights.energy
        # The last attention weights, and the sum of all so far
        self._padded = processed.new_zeros(n_batch, 2, n_tokens + 2 * self._half, dtype=torch.float32)
        self.history = self._padded[:, :, self._half : self._half + n_tokens]
        self._windows = processed.new_empty(n_batch, n_tokens, 2, self._kernel_size)
        self._rows = self._windows.view(n_batch * n_tokens, -1)
        self._hidden = processed.new_empty(n_batch * n_tokens, width)

    def compute(self, query: Tensor) -> Tensor:
        """query (B, A) -> energies (B, L) with the current `history`."""
        return torch.mv(self._compute_hidden(query), self._energy).view(self._windows.shape[:2])

    def _compute_hidden(self, query: Tensor) -> Tensor:
        """query (B, A) -> the hidden layer (B * L, A)."""
        n_batch, n_tokens = self._windows.shape[:2]
        self._windows.copy_(self._padded.unfold(2, self._kernel_size, 1).transpose(1, 2))
        torch.addmm(self._processed, self._rows, self._location.t(), out=self._hidden)
        self._hidden.view(n_batch, n_tokens, -1).add_(query.unsqueeze(1)).tanh_()
        return self._hidden

    def begin_backward(self) -> None:
        """Allocate the buffers for `step_back`."""
        n_batch, n_tokens, _, size = self._windows.shape
        self.d_processed, self.d_location, self.d_energy = (
            torch.zeros_like(one) for one in (self._processed, self._location, self._energy)
        )
        self._d_hidden = torch.empty_like(self._hidden)
        # A token of the history is in kernel_size windows, at a different place in each: its gradient is the sum over
        # a diagonal of (token, place), which as_strided reads as a row once the kernel is reversed.
        self._reversed = self._location.unflatten(1, (2, size)).flip(2).flatten(1)
        padded = self._windows.new_zeros(n_batch, n_tokens + 2 * self._half, 2, size)
        self._d_windows = padded[:, self._half : self._half + n_tokens]
        per_batch, per_token, per_channel, _ = padded.stride()
        strides = (per_batch, per_channel, per_token, per_token + 1)
        self._diagonals = padded.as_strided((n_batch, 2, n_tokens, size), strides)

    def step_back(self, query: Tensor, d_energies: Tensor, *, d_query: Tensor) -> Tensor:
        """query (B, A), d_energies (B, L) -> d_history (B, 2, L); writes the query's gradient to ``d_query`` (B, A)."""
        d_hidden, hidden, flat = self._d_hidden, self._compute_hidden(query), d_energies.reshape(-1)
        self.d_energy.addmv_(hidden.t(), flat)
        torch.mul(flat.unsqueeze(1), self._energy, out=d_hidden)
        torch.ops.aten.tanh_backward.grad_input(d_hidden, hidden, grad_input=d_hidden)
        self.d_processed.add_(d_hidden)
        self.d_location.addmm_(d_hidden.t(), self._rows)
        self._d_windows.copy_((d_hidden @ self._reversed).view_as(self._windows))
        torch.sum(d_hidden.view(*d_energies.shape, -1), 1, out=d_query)
        return self._diagonals.sum(3)


@never_compiled  # a graph of all steps would take too long to compile
def run_loop(
    gates: Tensor,
    memory: Tensor,
    processed: Tensor,
    padding: Tensor,
    weights: LoopWeights,
    *,
    attention_masks: Tensor | None,
    decoder_masks: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Run all decoder steps -> states (F, B, D + memory_dim), alignments (F, B, L) float32.

    gates (F, B, 4 * H) from prenet and biases, memory (B, L, memory_dim), processed (B, L, A), padding (B, L) bool;
    masks: dropout factors (F, B, H) and (F, B, D) of the LSTMs' outputs. States are the decoder LSTM's output and the
    context. All have one dtype.
    """
    keep = torch.is_grad_enabled()
    return _Loop.apply(keep, padding, attention_masks, decoder_masks, gates, memory, processed, *weights)


class _Loop(torch.autograd.Function):
    """The loop of `run_loop`. Attention doesn't read the decoder's LSTM, which therefore runs afterwards."""

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
        weights = LoopWeights(*tensors)
        n_steps, n_batch, n_context = len(gates), memory.size(0), memory.size(2)
        n_attention, n_decoder = weights.query.size(1), len(weights.decoder_bias) // 4
        lstm = partial(Lstm, n_steps, memory, keep=keep, n_batch=n_batch)
        attention = lstm(n_inputs=n_context + n_attention, n_hidden=n_attention)
        decoder = lstm(n_inputs=n_attention + n_context + n_decoder, n_hidden=n_decoder)
        energies = Energies(processed, weights)
        alignments = memory.new_empty(n_steps, *padding.shape, dtype=torch.float32)
        kept = torch.arange(2.0, device=memory.device).unsqueeze(1)  # the last weights are replaced, their sum is kept
        for step in range(n_steps):
            mask, alignment = None if attention_masks is None else attention_masks[step], alignments[step]
            context, attended = attention.inputs[step + 1].tensor_split([n_context], 1)  # inputs of the next step
            attended.copy_(attention.step(step, gates[step], weights.attention_rnn, mask))
            values = energies.compute(attended @ weights.query.t()).float()
            torch.softmax(values.masked_fill_(padding, float("-inf")), 1, out=alignment)
            torch.addcmul(alignment.unsqueeze(1), energies.history, kept, out=energies.history)
            context.copy_(torch.bmm(alignment.to(memory.dtype).unsqueeze(1), memory).squeeze(1))
        contexts, attended = attention.inputs[1:].tensor_split([n_context], 2)
        read, states = decoder.inputs.tensor_split([n_attention + n_context], 2)
        torch.cat([attended, contexts], 2, out=read[:n_steps])
        added = F.linear(read[:n_steps], weights.decoder_rnn[:, :-n_decoder], weights.decoder_bias)
        recurrent = weights.decoder_rnn[:, -n_decoder:].contiguous()
        for step in range(n_steps):
            mask = None if decoder_masks is None else decoder_masks[step]
            states[step + 1] = decoder.step(step, added[step], recurrent, mask, first=read.size(2))
        if keep:
            ctx.lstms = attention, decoder
            ctx.save_for_backward(alignments, attention_masks, decoder_masks, memory, processed, *tensors)
            ctx.set_materialize_grads(False)
        return torch.cat([states[1:], contexts], 2), alignments

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d_states: Tensor | None, d_alignments: Tensor | None) -> tuple[Tensor | None, ...]:
        alignments, attention_masks, decoder_masks, memory, processed, *tensors = ctx.saved_tensors
        weights, ((attention, decoder), ctx.lstms) = LoopWeights(*tensors), (ctx.lstms, None)
        n_steps, n_context = len(alignments), memory.size(2)
        n_attention, n_decoder = attention.n_hidden, decoder.n_hidden
        attended, energies = decoder.inputs[:n_steps, :, :n_attention], Energies(processed, weights)
        for one in (attention, decoder, energies):
            one.begin_backward()
        if d_states is None:
            d_states = memory.new_zeros(n_steps, len(memory), n_decoder + n_context)
        recurrent = weights.decoder_rnn[:, -n_decoder:].contiguous()
        d_after = memory.new_zeros(len(memory), n_decoder)  # of the decoder LSTM's output, from the following step
        for step in reversed(range(n_steps)):
            d_output = d_states[step, :, :n_decoder] + d_after
            if decoder_masks is not None:
                d_output.mul_(decoder_masks[step])
            d_after = decoder.step_back(step, d_output) @ recurrent
        d_read = decoder.d_gates.flatten(2) @ weights.decoder_rnn[:, :-n_decoder]
        d_contexts, queries = d_states[:, :, n_decoder:] + d_read[:, :, n_attention:], attended @ weights.query.t()
        d_queries = torch.empty_like(queries)
        history = torch.stack([alignments, alignments.cumsum(0)], 2).roll(1, 0)  # from the previous step
        history[0] = 0
        # Gradients of the attention LSTM's inputs and of the attention history, from the following step.
        d_inputs_after = memory.new_zeros(len(memory), attention.inputs.size(2))
        d_last, d_total = torch.zeros_like(alignments[0]), torch.zeros_like(alignments[0])
        for step in reversed(range(n_steps)):
            d_context = d_contexts[step]
            d_context += d_inputs_after[:, :n_context]
            d_alignment = torch.bmm(memory, d_context.unsqueeze(2)).squeeze(2) + d_last
            if d_alignments is not None:
                d_alignment += d_alignments[step]
            d_energies = torch._softmax_backward_data(d_alignment.float(), alignments[step], 1, torch.float32)
            energies.history.copy_(history[step])
            d_history = energies.step_back(queries[step], d_energies.to(memory.dtype), d_query=d_queries[step])
            d_total += d_history[:, 1]
            d_last = d_history[:, 0] + d_total
            d_attended = d_read[step, :, :n_attention] + d_inputs_after[:, n_context:]
            d_attended.addmm_(d_queries[step], weights.query)
            if attention_masks is not None:
                d_attended.mul_(attention_masks[step])
            d_inputs_after = attention.step_back(step, d_attended) @ weights.attention_rnn
        d_memory = torch.bmm(alignments.permute(1, 2, 0).to(memory.dtype), d_contexts.transpose(0, 1))
        d_weights = LoopWeights(
            attention_rnn=_weight_gradient(attention.d_gates, attention.inputs[:n_steps]),
            decoder_rnn=_weight_gradient(decoder.d_gates, decoder.inputs[:n_steps]),
            decoder_bias=decoder.d_gates.sum((0, 1)).flatten(),
            query=_weight_gradient(d_queries, attended),
            location=energies.d_location,
            energy=energies.d_energy,
        )
        inputs = (attention.d_gates.flatten(2), d_memory, energies.d_processed.view_as(processed))
        return None, None, None, None, *inputs, *d_weights


def _weight_gradient(d_outputs: Tensor, inputs: Tensor) -> Tensor:
    """Compute a weight's gradient (out, in) from all steps at once: d_outputs (F, B, out...), inputs (F, B, in)."""
    return d_outputs.flatten(2).flatten(0, 1).t() @ inputs.flatten(0, 1)
