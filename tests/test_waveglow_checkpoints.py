"""WaveGlow's published files are read, those too that pickle the whole network, and nothing in them is run."""

import importlib.util
import sys
import warnings
from pathlib import Path
from types import ModuleType

import pytest
import torch
from golden_files import entries, group, read_case, read_golden
from safetensors.torch import load_file
from tiny_waveglow import golden_config, golden_network, golden_noise
from torch import Tensor

from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.loading import load_networks
from common.checkpoints.reading import load_checkpoint
from common.training.optim import OPTIMIZERS, load_state_by_name

FOLDER = "waveglow"
CPU = torch.device("cpu")
# A network's classes as the published files know them; reading a file must not import them.
GLOW = """
import torch

IMPORTED = True


class WN(torch.nn.Module): ...
class Invertible1x1Conv(torch.nn.Module): ...
class WaveGlow(torch.nn.Module): ...
"""
LAYOUT = entries("waveglow/checkpoints.json", "layout")
SMALL = [file for file in LAYOUT if "full_shapes" not in file]
PLAIN = next((file for file in SMALL if LAYOUT[file]["optimizer"]["state"]), "")


@pytest.fixture
def glow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module ``glow``, to make a file of its classes with; `forget` it before reading."""
    source = tmp_path / "glow.py"
    source.write_text(GLOW)
    spec = importlib.util.spec_from_file_location("glow", source)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "glow", module)
    spec.loader.exec_module(module)
    return module


def forget(glow: ModuleType) -> None:
    """From here on nobody could import the module."""
    del sys.modules[glow.__name__]


def published_network(glow: ModuleType, state: dict[str, Tensor]) -> torch.nn.Module:
    """A network of these weights with the modules that the authors' classes hold."""
    network = glow.WaveGlow()
    for key, value in state.items():
        module, (*path, name) = network, key.split(".")
        for index, part in enumerate(path):
            if part not in dict(module.named_children()):
                module.add_module(part, _part(glow, state, ".".join(path[: index + 1]), path[index + 1 :]))
            module = module.get_submodule(part)
        setattr(module, name, torch.nn.Parameter(value))
    for convolution in network.convinv:
        convolution.W_inverse = torch.zeros(2, 2, 1)
    network.plain = {"set": {1, 2}, "size": network.upsample.weight.shape}
    network.kinds = torch.float16, torch.device("cpu")
    return network


def _part(glow: ModuleType, state: dict[str, Tensor], place: str, inside: list[str]) -> torch.nn.Module:
    """A new module at a place, which has others ``inside``."""
    if inside and inside[0].isdigit():
        return torch.nn.ModuleList()
    if inside:
        return glow.WN() if place.startswith("WN") else glow.Invertible1x1Conv()
    convolution = torch.nn.Conv1d(1, 1, 1, bias=f"{place}.bias" in state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.nn.utils.weight_norm(convolution) if f"{place}.weight_g" in state else convolution


def speak(checkpoint: Checkpoint, folder: Path, *, sigma: float | None = None) -> Tensor:
    """The sound of the goldens' first mel and noise, by default at their sigma."""
    about, tensors = read_case(folder, "waveglow_infer")
    networks, _ = load_networks(checkpoint, device=CPU)
    sigma = about["cases"][0]["sigma"] if sigma is None else sigma
    return networks["waveglow"].inverse(tensors["input.mel0"], sigma * golden_noise(tensors, 0))


def test_training_can_resume_from_a_published_checkpoint(folder: Path):
    path = folder / "checkpoints" / PLAIN
    payload = torch.load(path, weights_only=True)
    training = load_checkpoint(path).training
    assert training["epoch"] == LAYOUT[PLAIN]["epoch"] + 1
    networks, _ = load_networks(load_checkpoint(path), device=CPU)
    named = {f"waveglow.{key}": value for key, value in networks["waveglow"].named_parameters()}
    saved = training["optimizers"]["waveglow"]
    assert list(saved["states"]) == list(named)
    for index, state in enumerate(saved["states"].values()):
        assert torch.equal(state["exp_avg_sq"], payload["optimizer"]["state"][index]["exp_avg_sq"])
    optimizer = OPTIMIZERS["adam"](named.values(), 1e-4, weight_decay=0.0)
    load_state_by_name(optimizer, saved, named, where="voice.pt")


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("kind", ["model", "bare", "half", "wrapped"])
def test_a_pickled_network_speaks_and_its_classes_are_not_imported(
    folder: Path, tmp_path: Path, glow: ModuleType, kind: str, zipped: bool
):
    state = golden_network(folder).state_dict()
    network = published_network(glow, state)
    if kind == "half":
        network = network.half()
    content = {
        "model": {"model": network, "iteration": 3, "optimizer": {"state": {}}},
        "bare": network,
        "half": {"model": network},
        "wrapped": {"model": torch.nn.DataParallel(network)},
    }[kind]
    path = tmp_path / "ngc.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.save(content, path, _use_new_zipfile_serialization=zipped)
    forget(glow)
    checkpoint = load_checkpoint(path)
    assert "glow" not in sys.modules
    assert checkpoint.config == golden_config(read_golden(folder / "waveglow_model.json", "config"))
    expected = load_file(folder / "waveglow_infer.safetensors")["output.audio0"]
    torch.testing.assert_close(speak(checkpoint, folder), expected, atol=0.05 if kind == "half" else 3e-5, rtol=0)


def test_weights_without_weight_norm_and_with_fused_conditioning_speak_the_same(
    folder: Path, tmp_path: Path, glow: ModuleType
):
    expected = load_file(folder / "waveglow_infer.safetensors")["output.audio0"]
    removed = group(load_file(folder / "waveglow_model.safetensors"), "state_dict_removed")
    torch.save({"state_dict": {f"module.1.{key}": value for key, value in removed.items()}}, tmp_path / "removed.pt")
    torch.testing.assert_close(speak(load_checkpoint(tmp_path / "removed.pt"), folder), expected, atol=3e-5, rtol=0)
    state = golden_network(folder).state_dict()
    config = golden_config(read_golden(folder / "waveglow_model.json", "config"))
    for flow in range(config.n_flows):
        for kind in ("bias", "weight_g", "weight_v"):
            rows = [state.pop(f"WN.{flow}.cond_layers.{index}.{kind}") for index in range(config.wn_layers)]
            state[f"WN.{flow}.cond_layer.{kind}"] = torch.cat(rows)
    torch.save({"model": published_network(glow, state)}, tmp_path / "fused.pt")
    forget(glow)
    torch.testing.assert_close(speak(load_checkpoint(tmp_path / "fused.pt"), folder), expected, atol=3e-5, rtol=0)
