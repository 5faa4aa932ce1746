"""Jasper's network agrees with the published one, and hears an utterance as if it were alone."""

import copy
from pathlib import Path

import pytest
import torch
from golden_files import group, read_golden
from safetensors.torch import load_file
from tiny_jasper import CASES, FORMS, golden_network, lively
from torch import nn

from jasper.model import Jasper
from jasper.yaml_config import CONFIGS, load_config

FOLDER = "jasper"


@pytest.mark.parametrize(("form", "index"), CASES)
@pytest.mark.parametrize("masks", [True, False])
@torch.no_grad()
def test_log_probabilities_equal_the_published_ones(folder: Path, form: str, index: int, masks: bool):
    tensors = load_file(folder / f"{form}.safetensors")
    network = golden_network(folder, form, use_conv_masks=masks)
    out = network(tensors[f"input.x{index}"], tensors[f"input.lens{index}"])
    name = "output" if masks else "output_nomask"
    torch.testing.assert_close(out.log_probs, tensors[f"{name}.{index}.log_probs"], atol=3e-5, rtol=0)
    assert torch.equal(out.lengths, tensors[f"output.{index}.out_lens"])


@pytest.mark.parametrize("form", FORMS)
@torch.no_grad()
def test_every_block_gives_what_the_published_one_gives(folder: Path, form: str):
    tensors = load_file(folder / f"{form}.safetensors")
    network = golden_network(folder, form)
    found = []
    for block in network.encoder.layers:
        block.register_forward_hook(lambda _, __, out: found.append(out))
    network(tensors["input.x0"], tensors["input.lens0"])
    assert f"output.0.enc.{len(found)}" not in tensors
    for index, (x, lengths) in enumerate(found):
        torch.testing.assert_close(x.squeeze(2), tensors[f"output.0.enc.{index}"], atol=3e-5, rtol=0)
        assert torch.equal(lengths, tensors[f"output.0.enc_lens.{index}"])


@pytest.mark.parametrize("form", FORMS)
def test_in_training_batch_statistics_count_padding_as_published(folder: Path, form: str):
    tensors = load_file(folder / f"{form}.safetensors")
    network = golden_network(folder, form).train()
    for layer in network.modules():
        if isinstance(layer, nn.Dropout):
            layer.p = 0.0
    out = network(tensors["input.x0"], tensors["input.lens0"])
    torch.testing.assert_close(out.log_probs, tensors["train.log_probs"], atol=3e-5, rtol=0)
    state = network.state_dict()
    for key, value in group(tensors, "train.bn_after").items():
        torch.testing.assert_close(state[key], value, atol=3e-5, rtol=0)


def test_the_full_size_network_has_the_published_names_shapes_and_order(folder: Path):
    published = read_golden(folder / "full_size_state_dict.json")
    config = load_config(CONFIGS / "jasper10x5dr_speca.yaml").model
    with torch.device("meta"):
        network = Jasper(config)
    own = [(key, list(value.shape)) for key, value in network.state_dict().items()]
    assert own == [(key, entry["shape"]) for key, entry in published["state_dict"].items()]
    assert sum(parameter.numel() for parameter in network.parameters()) == published["n_params"]


@pytest.mark.parametrize("form", FORMS)
@torch.no_grad()
def test_folding_batch_norm_changes_nothing_that_is_heard(folder: Path, form: str):
    tensors = load_file(folder / f"{form}.safetensors")
    network = lively(golden_network(folder, form))
    folded = copy.deepcopy(network)
    folded.prepare_for_inference()
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in folded.modules())
    expected = network.infer(tensors["input.x0"], tensors["input.lens0"])
    found = folded.infer(tensors["input.x0"], tensors["input.lens0"])
    torch.testing.assert_close(found.log_probs, expected.log_probs, atol=5e-5, rtol=0)
