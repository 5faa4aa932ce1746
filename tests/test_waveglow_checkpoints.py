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
from torch import nn
from torch.nn.utils import weight_norm

IMPORTED = True


class WN(nn.Module):
    def __init__(self, n_in, n_cond, n_layers, n_channels, kernel_size, fused):
        super().__init__()
        self.n_layers, self.n_channels = n_layers, n_channels
        self.in_layers, self.res_skip_layers = nn.ModuleList(), nn.ModuleList()
        if not fused:
            self.cond_layers = nn.ModuleList()
        self.start = weight_norm(nn.Conv1d(n_in, n_channels, 1))
        self.end = nn.Conv1d(n_channels, 2 * n_in, 1)
        for i in range(n_layers):
            self.in_layers.append(weight_norm(nn.Conv1d(n_channels, 2 * n_channels, kernel_size, dilation=2**i)))
            width = n_channels * (2 if i < n_layers - 1 else 1)
            self.res_skip_layers.append(weight_norm(nn.Conv1d(n_channels, width, 1)))
            if not fused:
                self.cond_layers.append(weight_norm(nn.Conv1d(n_cond, 2 * n_channels, 1)))
        if fused:
            self.cond_layer = weight_norm(nn.Conv1d(n_cond, 2 * n_channels * n_layers, 1))


class Invertible1x1Conv(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = nn.Conv1d(c, c, 1, bias=False)
        self.W_inverse = torch.zeros(c, c, 1)


class WaveGlow(nn.Module):
    def __init__(self, n_mels, widths, n_layers, n_channels, kernel_size, fused=False):
        super().__init__()
        self.upsample = nn.ConvTranspose1d(n_mels, n_mels, 1024, stride=256)
        n_cond = n_mels * widths[0]
        self.WN = nn.ModuleList(WN(c // 2, n_cond, n_layers, n_channels, kernel_size, fused) for c in widths)
        self.convinv = nn.ModuleList(Invertible1x1Conv(c) for c in widths)
        self.plain = {"set": {1, 2}, "size": self.upsample.weight.shape}
        self.kinds = torch.float16, torch.device("cpu")
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


def published_network(glow: ModuleType, state: dict[str, Tensor], **changes) -> torch.nn.Module:
    """The network with weights of the goldens, as its authors' classes hold it."""
    n_layers = sum(key.startswith("WN.0.in_layers.") and key.endswith(".bias") for key in state)
    n_channels, _, kernel_size = state["WN.0.in_layers.0.weight_v"].shape
    widths = [len(value) for key, value in state.items() if key.startswith("convinv.")]
    shape = {"n_layers": n_layers, "n_channels": n_channels // 2, "kernel_size": kernel_size, "widths": widths}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = glow.WaveGlow(n_mels=len(state["upsample.bias"]), **shape, **changes)
    network.load_state_dict(state)
    return network


def speak(checkpoint: Checkpoint, folder: Path, *, sigma: float | None = None) -> Tensor:
    """The sound of the goldens' first mel and noise, by default at their sigma."""
    about, tensors = read_case(folder, "waveglow_infer")
    networks, _ = load_networks(checkpoint, device=CPU)
    sigma = about["cases"][0]["sigma"] if sigma is None else sigma
    return networks["waveglow"].inverse(tensors["input.mel0"], sigma * golden_noise(tensors, 0))


def test_a_checkpoint_of_several_gpus_has_its_prefix_stripped_and_no_training_state(folder: Path):
    (name,) = (file for file in SMALL if file != PLAIN)
    checkpoint = load_checkpoint(folder / "checkpoints" / name)
    assert checkpoint.training is None
    assert speak(checkpoint, folder).isfinite().all()


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
    torch.save({"model": published_network(glow, state, fused=True)}, tmp_path / "fused.pt")
    forget(glow)
    torch.testing.assert_close(speak(load_checkpoint(tmp_path / "fused.pt"), folder), expected, atol=3e-5, rtol=0)
