"""Published Jasper checkpoints are read with the numbers they were stored for."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from golden_files import first_matching, group, read_golden
from safetensors.torch import load_file

from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.checkpoints.loading import load_networks
from common.checkpoints.reading import load_checkpoint
from common.errors import CheckpointError
from common.registry import get_model
from common.training.optim import Novograd, load_state_by_name
from common.training.start import _check_fits
from jasper.model import Jasper
from jasper.yaml_config import CONFIGS, load_config
from scripts.checkpoint_tools import convert

FOLDER = "jasper"
CPU = torch.device("cpu")
BEST, EPOCH, V1, FULL = (first_matching(f"jasper/checkpoints/*{name}*") for name in ("best", "epoch", "v1", "full"))


def test_keys_of_the_first_version_are_those_of_the_second(folder: Path):
    found = load_checkpoint(V1)
    networks, _ = load_networks(found, device=CPU)
    old = torch.load(V1, weights_only=True)["state_dict"]
    state = networks["jasper"].state_dict()
    # Its other keys are a buffer of the features, and a number that nothing needs.
    assert len(state) == len([*group(old, "jasper_encoder"), *group(old, "jasper_decoder")])
    assert torch.equal(state["encoder.layers.0.conv.0.weight"], old["jasper_encoder.encoder.0.conv.0.weight"])
    assert torch.equal(state["decoder.layers.0.bias"], old["jasper_decoder.decoder_layers.0.bias"])
    assert found.training is None


def test_the_full_size_checkpoint_is_of_the_full_size_network(folder: Path):
    found = load_checkpoint(FULL, training=False)
    config = found.config
    assert config == load_config(CONFIGS / "jasper10x5dr_speca.yaml").model
    assert found.audio == config.features.audio
    with torch.device("meta"):
        expected = {key: tuple(value.shape) for key, value in Jasper(config).state_dict().items()}
    for weights in (found.networks, found.ema):
        assert {key: tuple(value.shape) for key, value in weights["jasper"].items()} == expected
    assert list(found.networks["jasper"]) == list(expected)


def test_the_optimizers_state_goes_to_the_parameters_it_was_of(folder: Path):
    layout = read_golden(folder / "checkpoints.json", "layout", EPOCH.name)
    found = load_checkpoint(EPOCH)
    assert (found.training["epoch"], found.training["iteration"]) == (layout["epoch"], layout["step"])
    network = Jasper(found.config)
    named = {f"jasper.{name}": parameter for name, parameter in network.named_parameters()}
    optimizer = Novograd(named.values(), 0.01, weight_decay=1e-3)
    load_state_by_name(optimizer, found.training["optimizers"]["jasper"], named, where="x.pt")
    old = torch.load(EPOCH, weights_only=True)["optimizer"]["state"]
    assert len(old) == len(named)
    for number, parameter in enumerate(named.values()):
        assert torch.equal(optimizer.state[parameter]["exp_avg"], old[number]["exp_avg"])
        assert torch.equal(optimizer.state[parameter]["exp_avg_sq"], old[number]["exp_avg_sq"])
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    assert int(optimizer.state[next(iter(named.values()))]["step"]) == old[0]["step"] + 1


def test_what_the_file_does_not_record_is_not_held_against_a_configuration(folder: Path, tmp_path: Path):
    found = load_checkpoint(BEST)
    config = found.config
    other = replace(config, use_conv_masks=False, blocks=tuple(replace(block, dropout=0.77) for block in config.blocks))
    template = Checkpoint(model="Jasper", config=other, audio=found.audio, text=None, networks={})
    _check_fits(template, found, get_model("Jasper"), where=Path("x.pt"), adaptable=())
    save_checkpoint(tmp_path / "again.pt", found)
    assert load_checkpoint(tmp_path / "again.pt").assumed_config == found.assumed_config
    with pytest.raises(CheckpointError, match=r"does not fit: blocks\[0\]\.dropout: 0\.2 .*use_conv_masks: True"):
        _check_fits(template, replace(found, assumed_config=()), get_model("Jasper"), where=Path("x.pt"), adaptable=())


def yaml_of(folder: Path, path: Path, **changes: str) -> Path:
    """The YAML file of the small published checkpoints, in its published form, with parts of its text replaced."""
    published = yaml.safe_load((CONFIGS / "jasper10x5dr_speca.yaml").read_text())
    published["jasper"] = read_golden(folder / "checkpoints.json", "config")
    text = yaml.safe_dump(published, sort_keys=False)
    for old, new in changes.items():
        assert f"{old}:" in text
        text = re.sub(rf"\b{old}: .*", f"{old}: {new}", text)
    path.write_text(text)
    return path


def test_a_checkpoint_is_converted_with_its_yaml_file(folder: Path, tmp_path: Path):
    convert([str(EPOCH), str(tmp_path / "a.pt"), "--config", str(yaml_of(folder, tmp_path / "a.yaml"))])
    plain, given = load_checkpoint(EPOCH), load_checkpoint(tmp_path / "a.pt")
    configs = [one.config for one in (given, plain)]
    assert configs[0] == configs[1]
    assert (given.audio, given.assumed, given.assumed_config) == (plain.audio, (), ())
    assert plain.assumed and plain.assumed_config and given.training["epoch"] == plain.training["epoch"]
    other = yaml_of(folder, tmp_path / "b.yml", use_conv_masks="false", window="hamming", window_stride="0.0125")
    convert([str(EPOCH), str(tmp_path / "b.pt"), "--config", str(other)])
    found = load_checkpoint(tmp_path / "b.pt")
    config = found.config
    assert (config.use_conv_masks, config.features.window, found.audio.hop_length) == (False, "hamming", 200)
    tensors = load_file(folder / "checkpoints_expected.safetensors")
    names = {"a.pt": True, "b.pt": False}  # padding is masked as the stored numbers have it, or not
    for name, is_expected in names.items():
        networks, _ = load_networks(load_checkpoint(tmp_path / name), device=CPU)
        log_probs = networks["jasper"].infer(tensors["input.x"], tensors["input.lens"]).log_probs
        assert torch.allclose(log_probs, tensors["output.state_dict"], atol=3e-5, rtol=0) == is_expected
