"""Tacotron 2's layers in fixed shapes, as a GPU computes them, against those that leave padding out, as CPUs do."""

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from common.nn.layers import mask_from_lengths, normalize_masked
from tacotron2.config import ModelConfig
from tacotron2.layers import Encoder

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


@pytest.mark.parametrize("lengths", [[7, 3, 1, 5], [4, 4], [1]])
def test_an_lstm_over_padding_equals_one_that_leaves_it_out(lengths: list[int]):
    torch.manual_seed(0)
    encoder = Encoder(replace(ModelConfig(), symbols_embedding_dim=8, encoder_embedding_dim=8))
    x = torch.randn(len(lengths), max(lengths), 8)
    results = []
    encoder.convolutions = nn.ModuleList()  # the LSTM alone
    for read in (lambda inputs, lengths: encoder(inputs, lengths, None), encoder.read_padded):
        encoder.zero_grad()
        inputs = x.clone().requires_grad_()
        memory = read(inputs, torch.tensor(lengths))
        (memory * torch.arange(memory.numel()).view_as(memory).cos()).sum().backward()
        gradients = [parameter.grad.clone() for parameter in encoder.lstm.parameters()]
        results.append([memory.detach(), inputs.grad, *gradients])
    for ours, expected in zip(*reversed(results), strict=True):
        torch.testing.assert_close(ours, expected, atol=2e-6, rtol=1e-5)
