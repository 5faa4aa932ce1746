"""The decoder's loop with its own backward pass against a plain one that autograd goes through."""

import pytest
import torch
import torch.nn.functional as F
from tiny_tacotron2 import TINY, tiny_network, without_dropout
from torch import Tensor

from tacotron2.decoder import Decoded, Decoder

SIZES = {"n_batch": 3, "n_tokens": 7, "n_frames": 11}
LENGTHS = torch.tensor([7, 4, 1])


def plain_decode(decoder: Decoder, memory: Tensor, padding: Tensor, frames: Tensor) -> Decoded:
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
    return Decoded(mel, decoder.gate_layer(states).squeeze(2), torch.stack(alignments, 1))


def inputs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """memory, padding, frames."""
    generator = torch.Generator().manual_seed(1)
    memory = torch.randn(SIZES["n_batch"], SIZES["n_tokens"], TINY.encoder_embedding_dim, generator=generator)
    frames = torch.randn(SIZES["n_batch"], TINY.n_mel_channels, SIZES["n_frames"], generator=generator)
    return memory.to(dtype), torch.arange(SIZES["n_tokens"]) >= LENGTHS.unsqueeze(1), frames.to(dtype)


def decoder_without_dropout(dtype: torch.dtype = torch.float64) -> Decoder:
    return without_dropout(tiny_network()).decoder.to(dtype).train()


def gradients(decode, decoder: Decoder, used: tuple[str, ...]) -> dict[str, Tensor]:
    """Outputs and gradients for a loss over the outputs named."""
    memory, padding, frames = inputs()
    memory.requires_grad_()
    decoder.zero_grad()
    out = decode(memory, padding, frames)
    generator = torch.Generator().manual_seed(2)
    loss = 0.0
    for name in used:
        value = getattr(out, name)
        loss = loss + (value * torch.randn(value.shape, generator=generator, dtype=torch.float64)).sum()
    loss.backward()
    grads = {
        name: torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        for name, parameter in decoder.named_parameters()
    }
    return {name: getattr(out, name).double() for name in used} | grads | {"memory": memory.grad}


@pytest.mark.parametrize("used", [("mel", "gate_logits", "alignments"), ("mel", "gate_logits"), ("alignments",)])
def test_outputs_and_gradients_equal_those_of_the_plain_loop(used: tuple[str, ...]):
    decoder = decoder_without_dropout()
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
        return decoder(memory, padding, frames, None).mel.square().sum()

    bias = decoder.attention_rnn.bias_ih.detach().clone()
    decoder.zero_grad()
    loss(bias).backward()
    direction = torch.randn(bias.shape, generator=torch.Generator().manual_seed(0))
    slope = (decoder.attention_rnn.bias_ih.grad * direction).sum()
    numeric = (loss(bias + 1e-2 * direction) - loss(bias - 1e-2 * direction)) / 2e-2
    torch.testing.assert_close(slope, numeric, rtol=0.02, atol=0)
    zeros = decoder.eval()(memory, padding, frames, None).mel
    assert not torch.allclose(zeros, decoder.train()(memory, padding, frames, None).mel, atol=1e-3)
