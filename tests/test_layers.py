"""Stand-alone layers agree with both published implementations, and masks and length regulation with slow truths."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from golden_files import group, matching, read_golden
from safetensors.torch import load_file
from torch import Tensor, nn

from common.nn.layers import Dropout, mask_from_lengths
from fastpitch.config import ModelConfig
from fastpitch.prosody import ConvReLUNorm, TemporalPredictor, regulate_length, whole_frames
from fastpitch.transformer import (
    FFTransformer,
    MultiHeadAttn,
    Packing,
    PositionalEmbedding,
    PositionwiseConvFF,
    TransformerConfig,
    TransformerLayer,
)

REFERENCES = matching("layers/ref_*")


def _column(mask: Tensor) -> Tensor:
    return mask.bool().view(mask.size(0), -1, 1)


def _config(kwargs: dict) -> TransformerConfig:
    """The published names as ours, of those that a layer has."""
    ours = {"n_layer": "n_layers", "n_head": "n_heads", "d_model": "n_channels", "d_inner": "n_filters"}
    renamed = {ours.get(name, name): value for name, value in kwargs.items()}
    absent = dict.fromkeys(("n_layers", "n_heads", "d_head", "n_filters", "kernel_size", "dropatt", "dropemb"), 1)
    names = [field.name for field in fields(TransformerConfig)]
    return TransformerConfig(
        **{name: value for name, value in (absent | renamed).items() if name in names}, mask_convolutions=False
    )


def _attention(kwargs: dict, given: dict) -> tuple[nn.Module, tuple]:
    return MultiHeadAttn(_config(kwargs)), (given["inp"], _column(given["mask"]))


def _feed_forward(kwargs: dict, given: dict) -> tuple[nn.Module, tuple]:
    return PositionwiseConvFF(_config(kwargs)), (given["inp"], None)


def _block(kwargs: dict, given: dict) -> tuple[nn.Module, tuple]:
    return TransformerLayer(_config(kwargs)), (given["inp"], _column(given["mask"]))


def _transformer(kwargs: dict, given: dict) -> tuple[nn.Module, tuple]:
    embedding = None
    if kwargs["embed_input"]:
        embedding = nn.Embedding(kwargs["n_embed"], kwargs["d_embed"], padding_idx=kwargs["padding_idx"])
        lengths = (given["dec_inp"] != kwargs["padding_idx"]).sum(1)
    else:
        lengths = given["seq_lens"]
    layer = FFTransformer(_config(kwargs), embedding)
    mask = mask_from_lengths(lengths, given["dec_inp"].size(1)).unsqueeze(2)
    return layer, (given["dec_inp"], mask, given.get("conditioning"))


def _conv_relu_norm(kwargs: dict, given: dict) -> tuple[nn.Module, tuple]:
    layer = ConvReLUNorm(
        kwargs["in_channels"], kwargs["out_channels"], kernel_size=kwargs["kernel_size"], dropout=kwargs["dropout"]
    )
    return layer, (given["signal"].transpose(1, 2),)


def _predictor(kwargs: dict, given: dict) -> tuple[nn.Module, tuple]:
    config = ModelConfig(
        **dict.fromkeys(("symbols_embedding_dim", "in_fft_output_size", "out_fft_output_size"), kwargs["input_size"]),
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


def test_packing_lays_utterances_one_after_another_with_zeros_between():
    x = torch.arange(1.0, 13.0).view(3, 4, 1)
    mask = mask_from_lengths(torch.tensor([2, 4, 1])).unsqueeze(2)
    packing = Packing(mask, gap=1)
    packed = packing.pack(x)
    assert packed.flatten().tolist() == [1, 2, 0, 5, 6, 7, 8, 0, 9, 0]
    assert packing.pieces == [2, 1, 4, 1, 1, 1]
    assert torch.equal(packing.mask, packed > 0)
    assert torch.equal(packing.unpack(packed), x * mask)
