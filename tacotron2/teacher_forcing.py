"""The decoder's loop over given frames, with a backward pass written by hand.

Plain autograd through the same loop takes 2.5 times as long and keeps 2.2 times the memory (full size, batch 4, 400
frames, one thread; 2.9 and 4.6 times for a small model; docs/BENCHMARKS.md). The reasons: each weight's gradient is
one matrix product over all steps after the loop, instead of one a step, and the attention's hidden layer, most of the
memory, is recomputed instead of kept. Autograd with small functions for these two things alone was measured to keep
less than half of the gain. `tests/test_tacotron2_loop.py` compares outputs and gradients with plain autograd. Nothing
else depends on how this file and `tacotron2.step` compute.
"""

from typing import Any

import torch
from torch import Tensor

from common.nn import never_compiled
from tacotron2.step import DecoderStep, Energies, StepWeights


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
        one = DecoderStep(StepWeights(*tensors), memory, processed, padding, n_steps if keep else 1)
        states = memory.new_empty(n_steps, len(memory), one.n_decoder + one.memory_dim)
        alignments = memory.new_empty(n_steps, *padding.shape, dtype=torch.float32)
        for step in range(n_steps):
            one.advance(
                *((step, step + 1) if keep else (0, 0)),
                gates[step],
                state=states[step],
                alignment=alignments[step],
                attention_mask=None if attention_masks is None else attention_masks[step],
                decoder_mask=None if decoder_masks is None else decoder_masks[step],
            )
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
        totals = alignments.cumsum(0)
        energies = Energies(processed, weights.location, weights.energy)
        back = _EnergiesBack(energies)
        attention_slopes, attention_by_cell, attention_forget = attention.slopes()
        decoder_slopes, decoder_by_cell, decoder_forget = decoder.slopes()
        if d_states is None:
            d_states = memory.new_zeros(n_steps, len(memory), n_decoder + memory_dim)
        d_queries, d_contexts = torch.empty_like(queries), d_states[:, :, n_decoder:].contiguous()
        # Gradients from the following step: of the two LSTMs' inputs and cells, and of the attention's history.
        d_after, d_inputs_after = (memory.new_zeros(len(memory), lstm.inputs.size(2)) for lstm in (decoder, attention))
        d_cells = [torch.zeros_like(lstm.cells[0]) for lstm in (attention, decoder)]
        d_last, d_total = torch.zeros_like(alignments[0]), torch.zeros_like(alignments[0])
        for step in reversed(range(n_steps)):
            d_output = d_states[step, :, :n_decoder] + d_after[:, n_attention + memory_dim :]
            if decoder_masks is not None:
                d_output.mul_(decoder_masks[step])
            slopes = decoder_slopes[step], decoder_by_cell[step], decoder_forget[step]
            d_after = _step_back(*slopes, d_output, d_cells[1]) @ weights.decoder_rnn
            d_context = d_contexts[step]
            d_context += d_after[:, n_attention : n_attention + memory_dim]
            d_context += d_inputs_after[:, :memory_dim]
            alignment = alignments[step]
            d_alignment = torch.bmm(memory, d_context.unsqueeze(2)).squeeze(2) + d_last
            if d_alignments is not None:
                d_alignment += d_alignments[step]
            d_energies = (d_alignment - (alignment * d_alignment).sum(1, keepdim=True)) * alignment
            energies.inside[:, 0] = alignments[step - 1] if step else 0
            energies.inside[:, 1] = totals[step - 1] if step else 0
            d_queries[step], d_history = back.step(queries[step], d_energies.to(memory.dtype))
            d_total += d_history[:, 1]
            d_last = d_history[:, 0] + d_total
            d_attended = d_after[:, :n_attention] + d_inputs_after[:, memory_dim:]
            d_attended.addmm_(d_queries[step], weights.query)
            if attention_masks is not None:
                d_attended.mul_(attention_masks[step])
            slopes = attention_slopes[step], attention_by_cell[step], attention_forget[step]
            d_gates = _step_back(*slopes, d_attended, d_cells[0])
            d_inputs_after = d_gates @ weights.attention_rnn
        d_memory = torch.bmm(alignments.permute(1, 2, 0).to(memory.dtype), d_contexts.transpose(0, 1))
        d_weights = StepWeights(
            attention_rnn=_weight_gradient(attention_slopes, attention.inputs[:n_steps]),
            decoder_rnn=_weight_gradient(decoder_slopes, decoder.inputs[:n_steps]),
            decoder_bias=decoder_slopes.sum((0, 1)).flatten(),
            query=_weight_gradient(d_queries, attended),
            location=back.d_location,
            energy=back.d_energy,
        )
        inputs = (attention_slopes.flatten(2), d_memory, back.d_processed.view_as(processed))
        return None, None, None, None, *inputs, *d_weights.tensors()


def _step_back(slopes: Tensor, cell_slope: Tensor, forget: Tensor, d_output: Tensor, d_cell: Tensor) -> Tensor:
    """One step of an LSTM backwards, in place: slopes (B, 4, H) become gradients of the gates (B, 4 * H).

    ``d_cell`` becomes the gradient of the previous cell.
    """
    if d_output.dtype == d_cell.dtype:
        d_cell.addcmul_(d_output, cell_slope)
    else:
        d_cell.add_(d_output * cell_slope)
    slopes[:, :3].mul_(d_cell.unsqueeze(1))
    slopes[:, 3].mul_(d_output)
    d_cell.mul_(forget)
    return slopes.view(len(slopes), -1)


def _weight_gradient(d_outputs: Tensor, inputs: Tensor) -> Tensor:
    """Gradient (out, in) of a weight, from all steps at once: d_outputs (F, B, ...), inputs (F, B, in)."""
    return d_outputs.flatten(2).flatten(0, 1).t() @ inputs.flatten(0, 1)


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
        self._one = forward.hidden.new_ones(())
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

    def step(self, query: Tensor, d_energies: Tensor) -> tuple[Tensor, Tensor]:
        """query (B, A), d_energies (B, L) -> d_query (B, A), d_history (B, 2, L), for `Energies.inside` as it is."""
        forward = self.forward
        forward.compute(query)
        n_batch, n_tokens = d_energies.shape
        hidden = forward.hidden
        flat = d_energies.reshape(-1)
        self.d_energy.addmv_(hidden.t(), flat)
        d_hidden = torch.addcmul(self._one, hidden, hidden, value=-1, out=self._d_hidden)
        d_hidden.mul_(forward.energy).mul_(flat.unsqueeze(1))
        self.d_processed.add_(d_hidden)
        self.d_location.addmm_(d_hidden.t(), forward.windows.view(len(hidden), -1))
        self._d_windows.copy_((d_hidden @ self._reversed).view(n_batch, n_tokens, 2, -1))
        return d_hidden.view(n_batch, n_tokens, -1).sum(1), self._diagonals.sum(3)
