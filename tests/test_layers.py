"""Layers, weight norm and spectral norm agree with the published ones, and figures of attention with slow sums."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from golden_files import group, matching, read_golden
from safetensors.torch import load_file
from torch import Tensor, nn

from common.nn.alignment import diagonality, unattended_tokens
from common.nn.layers import Dropout, mask_from_lengths
from common.nn.weight_norm import SpectralNormConv1d, WeightNormConv1d, WeightNormConv2d, fold_weight_norm
from fastpitch.config import ModelConfig
from fastpitch.prosody import ConvReLUNorm, TemporalPredictor, regulate_length, whole_frames
from fastpitch.transformer import (
    FFTransformer,
    MultiHeadAttn,
    PositionalEmbedding,
    PositionwiseConvFF,
    TransformerLayer,
)
from tacotron2.loss_function import distance_from_diagonal

REFERENCES = matching("layers/ref_*")


def _column(mask: Tensor) -> Tensor:
    return mask.bool().view(mask.size(0), -1, 1)


OURS = {"n_layer": "in_fft_n_layers", "n_head": "in_fft_n_heads", "d_head": "in_fft_d_head"}
OURS |= {"d_inner": "in_fft_conv1d_filter_size", "kernel_size": "in_fft_conv1d_kernel_size"}
OURS |= {name: f"p_in_fft_{name}" for name in ("dropout", "dropatt", "dropemb")}
WIDTHS = ("symbols_embedding_dim", "in_fft_output_size", "out_fft_output_size")


def _config(kwargs: dict) -> ModelConfig:
    """The published names as ours, of those that a layer has."""
    given = {OURS[name]: value for name, value in kwargs.items() if name in OURS}
    return ModelConfig(**given, **dict.fromkeys(WIDTHS, kwargs["d_model"]), mask_convolutions=False)


def _attention(kwargs: dict, given: dict) -> tuple[nn.Module, tuple]:
    return MultiHeadAttn(_config(kwargs), "in"), (given["inp"], _column(given["mask"]))


def _feed_forward(kwargs: dict, given: dict) -> tuple[nn.Module, tuple]:
    return PositionwiseConvFF(_config(kwargs), "in"), (given["inp"], None)


def _block(kwargs: dict, given: dict) -> tuple[nn.Module, tuple]:
    return TransformerLayer(_config(kwargs), "in"), (given["inp"], _column(given["mask"]))


def _transformer(kwargs: dict, given: dict) -> tuple[nn.Module, tuple]:
    embedding = None
    if kwargs["embed_input"]:
        embedding = nn.Embedding(kwargs["n_embed"], kwargs["d_embed"], padding_idx=kwargs["padding_idx"])
        lengths = (given["dec_inp"] != kwargs["padding_idx"]).sum(1)
    else:
        lengths = given["seq_lens"]
    layer = FFTransformer(_config(kwargs), "in", embedding)
    mask = mask_from_lengths(lengths, given["dec_inp"].size(1)).unsqueeze(2)
    return layer, (given["dec_inp"], mask, given.get("conditioning"))


def _conv_relu_norm(kwargs: dict, given: dict) -> tuple[nn.Module, tuple]:
    layer = ConvReLUNorm(
        kwargs["in_channels"], kwargs["out_channels"], kernel_size=kwargs["kernel_size"], dropout=kwargs["dropout"]
    )
    return layer, (given["signal"].transpose(1, 2),)


def _predictor(kwargs: dict, given: dict) -> tuple[nn.Module, tuple]:
    config = ModelConfig(
        **dict.fromkeys(WIDTHS, kwargs["input_size"]),
        dur_predictor_filter_size=kwargs["filter_size"],
        dur_predictor_kernel_size=kwargs["kernel_size"],
        p_dur_predictor_dropout=kwargs["dropout"],
        dur_predictor_n_layers=kwargs["n_layers"],
        mask_convolutions=False,
    )
    layer = TemporalPredictor(config, "dur")
    return layer, (given["enc_out"], _column(given["enc_out_mask"]))


def _positions(kwargs: dict, given: dict) -> tuple[nn.Module, tuple]:
    return PositionalEmbedding(kwargs["demb"]), (len(given["pos_seq"]),)


BUILDERS: dict[str, Callable[[dict, dict], tuple[nn.Module, tuple]]] = {
    "MultiHeadAttn": _attention,
    "PositionwiseConvFF": _feed_forward,
    "TransformerLayer": _block,
    "FFTransformer": _transformer,
    "ConvReLUNorm": _conv_relu_norm,
    "TemporalPredictor": _predictor,
    "PositionalEmbedding": _positions,
}


@pytest.mark.parametrize("reference", REFERENCES)
def test_each_layer_gives_the_published_numbers(goldens: Path, reference: str):
    cases = read_golden(goldens / reference / "index.json", "cases")
    checked = 0
    for case in cases:
        if case["kwargs"].get("n_predictions", 1) > 1:
            continue  # several values a token, which no published FastPitch predicts
        tensors = load_file(goldens / "layers" / case["file"])
        kwargs = {key: value for key, value in case["kwargs"].items() if key != "n_predictions"}
        layer, arguments = BUILDERS[case["class"]](kwargs, group(tensors, "in"))
        layer.load_state_dict(group(tensors, "state"))
        out = layer.eval()(*arguments)
        expected = tensors["out.out"]
        if case["class"] == "ConvReLUNorm":
            out = out.transpose(1, 2)
        if case["class"] in ("PositionalEmbedding", "TemporalPredictor"):
            out = out.view_as(expected)
        torch.testing.assert_close(
            out, expected, atol=1e-5, rtol=0, msg=lambda text, case=case: f"{case['name']}: {text}"
        )
        checked += 1
    assert checked


@pytest.mark.parametrize("reference", REFERENCES)
def test_length_regulation_repeats_tokens_as_published(goldens: Path, reference: str):
    tensors = load_file(goldens / reference / "regulate_len.safetensors")
    for case in read_golden(goldens / reference / "index.json", "regulate_len"):
        given = group(tensors, case["name"])
        frames = whole_frames(given["durations"] / case["pace"])
        out, lengths = regulate_length(given["enc_out"], frames, case["mel_max_len"])
        size = given["out"].size(1)
        assert torch.equal(lengths, given["dec_lens"])
        torch.testing.assert_close(out[:, :size], given["out"], atol=1e-6, rtol=0)
        assert not out[:, size:].any()


def test_length_regulation_sums_the_gradient_over_a_tokens_frames():
    encoded = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    frames = torch.tensor([[2, 0, 1], [1, 1, 0]])
    assert torch.autograd.gradcheck(lambda x: regulate_length(x, frames, 5)[0], encoded)


@pytest.mark.parametrize("reference", REFERENCES)
def test_masks_are_as_published(goldens: Path, reference: str):
    tensors = load_file(goldens / reference / "mask_from_lens.safetensors")
    for name, case in read_golden(goldens / reference / "index.json", "mask_from_lens").items():
        mask = mask_from_lengths(tensors[f"{name}.lens"], case["max_len"])
        assert mask.dtype == torch.bool
        assert torch.equal(mask.long(), tensors[f"{name}.mask"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_keeps_the_mean_and_drops_its_share(dtype: torch.dtype):
    torch.manual_seed(0)
    ones = torch.ones(1001, 999, dtype=dtype, requires_grad=True)
    dropped = Dropout(0.1)(ones)
    dropped.sum().backward()
    assert (dropped == 0).float().mean().item() == pytest.approx(0.1, abs=2e-3)
    assert dropped.float().mean().item() == pytest.approx(1.0, abs=4e-3)
    assert torch.equal(ones.grad, dropped)  # the same elements, the same scale
    assert not torch.equal(Dropout(0.1)(ones), dropped)


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


N_FRAMES, N_TOKENS = 60, 20


def one_hot(tokens: Tensor) -> Tensor:
    """Attention (1, F, L) on one token a frame."""
    return torch.nn.functional.one_hot(tokens, N_TOKENS).float().unsqueeze(0)


DIAGONAL = torch.arange(N_FRAMES) * N_TOKENS // N_FRAMES


SHUFFLED = DIAGONAL[torch.randperm(N_FRAMES, generator=torch.Generator().manual_seed(0))]
UNEVEN = (torch.linspace(0, 1, N_FRAMES) ** 0.5 * (N_TOKENS - 1)).long()
UNIFORM = torch.full((1, N_FRAMES, N_TOKENS), 1 / N_TOKENS)


@pytest.mark.parametrize(
    ("alignments", "direction", "within"),
    [
        (one_hot(DIAGONAL), 1.0, 2e-3),
        (one_hot(UNEVEN), 1.0, 0.05),
        (one_hot(SHUFFLED), 0.0, 0.25),
        (UNIFORM, 0.0, 1e-6),
        (one_hot(torch.full((N_FRAMES,), 7)), 0.0, 0.0),
        (one_hot(DIAGONAL.flip(0)), -1.0, 2e-3),
        (0.5 * one_hot(DIAGONAL) + 0.5 * UNIFORM, 0.5, 0.02),
    ],
    ids="diagonal uneven shuffled uniform stuck backwards mixed".split(),
)
def test_direction_of_an_attention(alignments: Tensor, direction: float, within: float):
    lengths = torch.tensor([alignments.size(2)]), torch.tensor([alignments.size(1)])
    assert float(diagonality(alignments, *lengths)) == pytest.approx(direction, abs=within)


def test_tokens_that_no_frame_attends_to_most_are_counted_up_to_the_texts_end():
    skipping = torch.tensor([0, 0, 2, 2, 3, 3])
    alignments = torch.nn.functional.one_hot(torch.stack([skipping, torch.zeros(6).long()]), 6).float()
    alignments[0] = 0.6 * alignments[0] + 0.1 * torch.ones(6)
    alignments[1, 2:, 1] = 5.0  # after the end of the second one's speech
    lengths = torch.tensor([5, 2]), torch.tensor([6, 2])
    assert unattended_tokens(alignments, *lengths).tolist() == [2, 1]
    assert unattended_tokens(one_hot(DIAGONAL), torch.tensor([N_TOKENS]), torch.tensor([N_FRAMES])).tolist() == [0]


def test_distance_from_the_diagonal_is_what_the_slow_sum_says_and_nothing_past_the_ends():
    alignments = torch.softmax(torch.randn(2, 7, 5, generator=torch.Generator().manual_seed(0)), 2)
    token_lengths, frame_lengths = [5, 3], [7, 4]
    found = distance_from_diagonal(alignments, torch.tensor(token_lengths), torch.tensor(frame_lengths))
    for row in range(2):
        for frame in range(7):
            expected = 0.0
            for token in range(5):
                distance = token / token_lengths[row] - frame / frame_lengths[row]
                expected += float(alignments[row, frame, token]) * (1 - math.exp(-(distance**2) / (2 * 0.2**2)))
            inside = frame < frame_lengths[row]
            assert float(found[row, frame]) == pytest.approx(expected if inside else 0.0, abs=1e-6)
