"""Weight norm and spectral norm agree with PyTorch's older ones, can be copied, and weight norm can be folded."""

import pytest
import torch
from torch import Tensor, nn

from common.nn.weight_norm import SpectralNormConv1d, WeightNormConv1d, WeightNormConv2d, fold_weight_norm

CASES = {
    "grouped": (WeightNormConv1d, nn.Conv1d, (6, 4, 3), {"stride": 2, "dilation": 2, "padding": 2, "groups": 2}),
    "plane": (WeightNormConv2d, nn.Conv2d, (3, 4, (5, 1)), {"stride": (3, 1), "padding": (2, 0), "bias": False}),
}


def seeded(kind: type[nn.Module], shape: tuple, options: dict) -> nn.Module:
    torch.manual_seed(3)
    return kind(*shape, **options)


def example(layer: nn.Module) -> Tensor:
    size = (2, layer.in_channels, 11) + ((3,) if isinstance(layer, nn.Conv2d) else ())
    return torch.randn(size, generator=torch.Generator().manual_seed(5))


def gradients(layer: nn.Module, x: Tensor) -> dict[str, Tensor]:
    layer.zero_grad()
    layer(x).square().sum().backward()
    return {name: parameter.grad for name, parameter in layer.named_parameters()}


@pytest.mark.filterwarnings("ignore:.*torch.nn.utils.weight_norm:FutureWarning")  # PyTorch's older one
@pytest.mark.parametrize("case", CASES)
def test_weight_norm_has_the_values_gradients_and_names_of_the_older_one(case: str):
    kind, plain, shape, options = CASES[case]
    ours = seeded(kind, shape, options)
    older = torch.nn.utils.weight_norm(seeded(plain, shape, options))
    assert list(ours.state_dict()) == list(older.state_dict())
    x = example(ours)
    torch.testing.assert_close(ours(x), older(x), atol=1e-6, rtol=1e-6)  # the initial weights
    with torch.no_grad():
        ours.weight_g.mul_(1.3)
        ours.weight_v.mul_(0.7)
    older.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(x), older(x), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(gradients(ours, x), gradients(older, x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_a_folded_layer_computes_the_same_with_a_plain_weight(case: str):
    kind, _, shape, options = CASES[case]
    network = nn.ModuleDict({"inner": nn.Sequential(seeded(kind, shape, options))})
    with torch.no_grad():
        network["inner"][0].weight_v.mul_(3)
    x = example(network["inner"][0])
    expected = network["inner"](x)
    random_state = torch.get_rng_state()
    fold_weight_norm(network)
    folded = network["inner"][0]
    names = ["inner.0.weight"] if folded.bias is None else ["inner.0.bias", "inner.0.weight"]  # the published order
    assert list(network.state_dict()) == names
    assert torch.equal(network["inner"](x), expected)
    assert torch.equal(torch.get_rng_state(), random_state)
    fold_weight_norm(network)  # a second time does nothing
    assert torch.equal(torch.jit.script(network["inner"])(x), expected)


def spectral_pair() -> tuple[SpectralNormConv1d, nn.Conv1d]:
    shape, options = (4, 6, 5), {"groups": 2, "padding": 2}
    ours = seeded(SpectralNormConv1d, shape, options)
    older = torch.nn.utils.spectral_norm(seeded(nn.Conv1d, shape, options))
    assert list(ours.state_dict()) == list(older.state_dict())
    assert [name for name, _ in ours.named_buffers()] == [name for name, _ in older.named_buffers()]
    older.load_state_dict(ours.state_dict())
    return ours, older


def test_spectral_norm_advances_as_the_older_one_does_in_a_forward_pass():
    ours, older = spectral_pair()
    x = example(ours)
    for _ in range(3):
        expected = gradients(older, x)  # one iteration, then the pass
        ours.advance()
        torch.testing.assert_close(gradients(ours, x), expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(dict(ours.named_buffers()), dict(older.named_buffers()), atol=1e-6, rtol=1e-6)
