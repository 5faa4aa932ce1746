"""Tacotron 2's layers, loop and recorded steps against slower or plainer forms of them."""

import copy
from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from tiny_tacotron2 import TINY, tiny_network, without_dropout
from torch import Tensor, nn

from common.nn.layers import mask_from_lengths
from common.synthesis.cuda_graphs import GraphRecorder
from common.synthesis.utterances import Controls
from tacotron2.decoder import Decoder, DecoderStep
from tacotron2.layers import normalize_masked
from tacotron2.model import Tacotron2, run_steps

Normalize = Callable[[nn.BatchNorm1d, Tensor, Tensor], Tensor]


def a_norm() -> nn.BatchNorm1d:
    """A batch norm of six channels that has been used before."""
    norm, generator = nn.BatchNorm1d(6), torch.Generator().manual_seed(1)
    for tensor in (norm.weight.data, norm.running_var):
        tensor.uniform_(0.5, 2.0, generator=generator)
    for tensor in (norm.bias.data, norm.running_mean):
        tensor.normal_(generator=generator)
    return norm


def normalize_rows(norm: nn.BatchNorm1d, x: Tensor, mask: Tensor) -> Tensor:
    """Batch norm of the valid rows alone, by the running statistics if there is but one."""
    rows = x.transpose(1, 2)
    alone = nn.functional.batch_norm if mask.sum() == 1 else lambda valid, *_, **__: norm(valid)
    valid = alone(rows[mask], norm.running_mean, norm.running_var, norm.weight, norm.bias, eps=norm.eps)
    return torch.zeros_like(rows).index_put((mask,), valid).transpose(1, 2)


def normalized(function: Normalize, norm: nn.BatchNorm1d, x: Tensor, lengths: list[int]) -> dict[str, Tensor]:
    """The result, the gradients of a weighted sum of it, and the running statistics afterwards."""
    x = x.clone().requires_grad_()
    y = function(norm, x, mask_from_lengths(torch.tensor(lengths), x.size(2)))
    weights = torch.linspace(-1, 1, x.numel()).view_as(x).cos()
    (y.float() * weights).sum().backward()
    return {"y": y.detach(), "x": x.grad, "weight": norm.weight.grad, "bias": norm.bias.grad} | dict(
        norm.named_buffers()
    )


@pytest.mark.parametrize("lengths", [[9, 4, 7], [9, 9, 9], [1, 1, 0], [1, 0, 0]])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("offset", [0.0, 3000.0])
def test_batch_norm_in_fixed_shapes_equals_that_of_the_valid_rows(lengths: list[int], training: bool, offset: float):
    x = torch.randn(3, 6, 9, generator=torch.Generator().manual_seed(0)) + offset
    norm = a_norm().train(training)
    norm.running_mean += offset
    expected = normalized(normalize_rows, copy.deepcopy(norm), x, lengths)
    ours = normalized(normalize_masked, copy.deepcopy(norm), x, lengths)
    if training and sum(lengths) > 1:
        assert ours["num_batches_tracked"] == norm.num_batches_tracked + 1
        assert not torch.equal(ours["running_var"], norm.running_var)
    else:
        assert all(torch.equal(ours[name], buffer) for name, buffer in norm.named_buffers())
    # A value of 3000 is exact to 1e-4 in float32; the mean of squares minus the square of the mean would be off by 1.
    for name, value in expected.items():
        torch.testing.assert_close(ours[name], value, atol=3e-6 if offset == 0 else 1e-2, rtol=1e-5, msg=name)


SIZES = {"n_batch": 3, "n_tokens": 7, "n_frames": 11}
LENGTHS = torch.tensor([7, 4, 1])


def plain_decode(decoder: Decoder, memory: Tensor, padding: Tensor, frames: Tensor) -> tuple[Tensor, ...]:
    """The decoder as the paper writes it, one module after the other."""
    layer = decoder.attention_layer
    prenet = decoder.prenet(F.pad(frames, (1, -1)).permute(2, 0, 1), None)
    processed = layer.memory_layer(memory)
    context = memory.new_zeros(memory.size(0), memory.size(2))
    weights = total = memory.new_zeros(padding.shape)
    attended = decided = None
    states, alignments = [], []
    for step in prenet:
        attended = decoder.attention_rnn(torch.cat([step, context], 1), attended)
        history = torch.stack([weights, total], 1)
        location = layer.location_layer.location_dense(layer.location_layer.location_conv(history).transpose(1, 2))
        hidden = torch.tanh(layer.query_layer(attended[0]).unsqueeze(1) + location + processed)
        energies = layer.v(hidden).squeeze(2).masked_fill(padding, float("-inf"))
        weights = torch.softmax(energies, 1)
        total = total + weights
        context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
        decided = decoder.decoder_rnn(torch.cat([attended[0], context], 1), decided)
        states.append(torch.cat([decided[0], context], 1))
        alignments.append(weights)
    states = torch.stack(states, 1)
    mel = decoder.linear_projection(states).transpose(1, 2)
    return mel, decoder.gate_layer(states).squeeze(2), torch.stack(alignments, 1)


def inputs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """memory, padding, frames."""
    generator = torch.Generator().manual_seed(1)
    memory = torch.randn(SIZES["n_batch"], SIZES["n_tokens"], TINY.encoder_embedding_dim, generator=generator)
    frames = torch.randn(SIZES["n_batch"], TINY.n_mel_channels, SIZES["n_frames"], generator=generator)
    return memory.to(dtype), torch.arange(SIZES["n_tokens"]) >= LENGTHS.unsqueeze(1), frames.to(dtype)


def gradients(decode, decoder: Decoder, used: tuple[str, ...]) -> dict[str, Tensor]:
    """Outputs and gradients for a loss over the outputs named."""
    memory, padding, frames = inputs()
    memory.requires_grad_()
    decoder.zero_grad()
    out = dict(zip(("mel", "gate_logits", "alignments"), decode(memory, padding, frames)))
    generator = torch.Generator().manual_seed(2)
    loss = 0.0
    for name in used:
        value = out[name]
        loss = loss + (value * torch.randn(value.shape, generator=generator, dtype=torch.float64)).sum()
    loss.backward()
    grads = {
        name: torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        for name, parameter in decoder.named_parameters()
    }
    return {name: out[name].double() for name in used} | grads | {"memory": memory.grad}


@pytest.mark.parametrize("used", [("mel", "gate_logits", "alignments"), ("mel", "gate_logits"), ("alignments",)])
def test_outputs_and_gradients_equal_those_of_the_plain_loop(used: tuple[str, ...]):
    decoder = without_dropout(tiny_network()).decoder.double().train()
    ours = gradients(lambda *given: decoder(*given, None), decoder, used)
    plain = gradients(lambda *given: plain_decode(decoder, *given), decoder, used)
    assert set(plain) == set(ours)
    for name, expected in plain.items():
        # Alignments and cells are float32 even here.
        torch.testing.assert_close(ours[name], expected, atol=2e-5, rtol=2e-5, msg=lambda m, n=name: f"{n}: {m}")


def test_dropout_of_the_lstms_is_part_of_the_recurrence():
    """Gradients with dropout against finite differences, the masks being the same at each evaluation."""
    network = tiny_network(p_attention_dropout=0.3, p_decoder_dropout=0.4)
    decoder = network.decoder.train()
    decoder.prenet.dropout.p = 0.0
    memory, padding, frames = inputs(torch.float32)

    def loss(bias: Tensor) -> Tensor:
        torch.manual_seed(5)
        with torch.no_grad():
            decoder.attention_rnn.bias_ih.copy_(bias)
        return decoder(memory, padding, frames, None)[0].square().sum()

    bias = decoder.attention_rnn.bias_ih.detach().clone()
    decoder.zero_grad()
    loss(bias).backward()
    direction = torch.randn(bias.shape, generator=torch.Generator().manual_seed(0))
    slope = (decoder.attention_rnn.bias_ih.grad * direction).sum()
    numeric = (loss(bias + 1e-2 * direction) - loss(bias - 1e-2 * direction)) / 2e-2
    torch.testing.assert_close(slope, numeric, rtol=0.02, atol=0)
    zeros = decoder.eval()(memory, padding, frames, None)[0]
    assert not torch.allclose(zeros, decoder.train()(memory, padding, frames, None)[0], atol=1e-3)


class Recorder(GraphRecorder):
    """Runs again what a GPU would record."""

    def capture(self, work: Callable[[], object]) -> tuple[Callable[[], object], object]:
        """As `GraphRecorder.capture`, without a GPU: the outputs stay in the same tensors."""
        made = work()
        return lambda: [own.copy_(new) for own, new in zip(made, work())], made


def assert_same_speech(ours: Tacotron2, plain: Tacotron2, lengths: list[int], *, seed: int = 0) -> None:
    tokens = torch.randint(1, 20, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(seed))
    first, second = (one.infer(tokens, torch.tensor(lengths), Controls(seed=seed)) for one in (plain, ours))
    assert torch.equal(first.lengths, second.lengths) and torch.equal(first.frames, second.frames)
    assert torch.equal(first.finished, second.finished)
    torch.testing.assert_close(second.mel, first.mel, atol=1e-5, rtol=0)
    torch.testing.assert_close(second.alignments, first.alignments, atol=1e-5, rtol=0)


def test_a_prepared_network_speaks_alike_whatever_it_spoke_before_and_recorded():
    plain, prepared, recorded = tiny_network(), tiny_network(), tiny_network()
    for network in (prepared, recorded):
        network.prepare_for_inference()
    step = partial(run_steps, DecoderStep(recorded.decoder, torch.float32))
    recorded._prepared[torch.float32] = Recorder("the decoder").by_shape(step)
    for seed, lengths in enumerate(([9, 3], [12, 12], [9, 3], [5, 31])):
        for ours in (prepared, recorded):
            assert_same_speech(ours, plain, lengths, seed=seed)
    with torch.inference_mode():  # whose tensors cannot be written outside it
        assert_same_speech(recorded, plain, [9, 3])
    assert_same_speech(recorded, plain, [9, 3])
