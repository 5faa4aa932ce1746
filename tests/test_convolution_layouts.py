"""Convolutions on a GPU read channels-last tensors, in full-size updates: kernels for 16 bits and TF32 copy others.

The networks are on the meta device, which computes shapes and memory layouts alone, also of backward passes; on fake
CUDA tensors autocast's copies are there too, and only forward passes can run.
"""

from collections import Counter
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from fake_cuda import FakeGpu, gpu
from test_fake_cuda import CASES as TINY_CASES, Case
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import hifigan.model
import waveglow.model
from common.config import AudioConfig
from common.data.batch import Batch
from common.nn import discriminators, layers
from common.training.objective import Networks, Objective
from fastpitch.config import ModelConfig as FastPitchConfig
from fastpitch.loss_function import FastPitchObjective
from fastpitch.model import FastPitch, FastPitchBatch
from hifigan.arg_parser import TrainingOptions as HifiganOptions
from hifigan.config import PRESETS
from hifigan.data_function import HifiganBatch
from hifigan.loss_function import HifiganObjective
from hifigan.model import build_networks as build_hifigan
from jasper.augmentation import Augmentation
from jasper.data_function import JasperBatch
from jasper.loss_function import JasperObjective
from jasper.model import Jasper
from jasper.yaml_config import load_config
from waveglow.arg_parser import TrainingOptions as WaveGlowOptions
from waveglow.config import ModelConfig as WaveGlowConfig
from waveglow.data_function import WaveGlowBatch
from waveglow.loss_function import WaveGlowObjective
from waveglow.model import build_networks as build_waveglow

__all__ = ["gpu"]
aten = torch.ops.aten
META = torch.device("meta")
BATCH = 5  # no weight has as many rows
NAMES = tuple("abcde")


class Layouts(TorchDispatchMode):
    """Gives convolutions' results the memory layout that they have with cuDNN, and counts what is copied for them."""

    def __init__(self) -> None:
        super().__init__()
        self.read = 0  # bytes of inputs and of gradients of outputs
        self.copied: Counter[str] = Counter()  # bytes of those in another layout
        self.relaid = 0  # bytes of copies that change a layout before a convolution

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        packet = func.overloadpacket
        if packet is aten.convolution:
            result = self._see("input", args[0], args[1], result)
        elif packet is aten.convolution_backward:
            gradient, *others = result
            self._see("gradient", args[0], args[2], gradient)
            result = (None if gradient is None else self._see("saved", args[1], args[2], gradient), *others)
        elif packet in (aten.clone, aten._to_copy) and result.dim() > 2 and result.size(0) in (BATCH, 2 * BATCH):
            self.relaid += result.nbytes * (result.stride() != args[0].stride())
        return result

    def _see(self, what: str, read: Tensor, weight: Tensor, result: Any) -> Any:
        """Count a tensor that a convolution reads; returns its result in the layout of the kernel."""
        self.read += read.nbytes
        is_last = read.dim() == 4 and has_channels_last(read)
        if not is_last and not (read.dim() == 4 and read.size(1) == 1):
            self.copied[f"{what} {tuple(read.shape)} {read.stride()}"] += read.nbytes
        if result is None or not (is_last or (weight.dim() == 4 and has_channels_last(weight))):
            return result
        return torch.empty(result.shape, dtype=result.dtype, device=result.device, memory_format=torch.channels_last)


def has_channels_last(x: Tensor) -> bool:
    """Whether PyTorch takes x (B, C, H, W) for channels last: torch.ops conv's ``suggest_memory_format``."""
    return torch._prims_common.suggest_memory_format(x) is torch.channels_last


def _fastpitch(**options: Any) -> tuple[Networks, Objective, Batch]:
    config = FastPitchConfig(**options)
    tokens, mels = torch.ones(BATCH, 80, dtype=torch.int64), torch.zeros(BATCH, 80, 600)
    lengths = torch.full((BATCH,), 80), torch.full((BATCH,), 600)
    batch: Any = FastPitchBatch(NAMES, tokens, lengths[0], mels, lengths[1])
    given = {"durations": torch.ones_like(tokens), "pitch": torch.ones(BATCH, 80)}
    if config.learned_alignment:
        given = {"pitch_frames": torch.ones(BATCH, 600), "prior": torch.ones(BATCH, 600, 80)}
    objective = FastPitchObjective(energy=config.energy_conditioning, alignment=config.learned_alignment)
    return {"fastpitch": FastPitch(config)}, objective, FastPitchBatch(**vars(batch) | given)


def _hifigan() -> tuple[Networks, Objective, Batch]:
    audio = AudioConfig(framing="aligned", peak=0.95)
    objective = HifiganObjective(HifiganOptions(segment_size=8192, concat_fwd=True), audio)
    batch = HifiganBatch(NAMES, torch.zeros(BATCH, 8192), torch.full((BATCH,), 8192), audio.hop_length)
    return build_hifigan(PRESETS["v1"], audio, None), objective, batch


def _waveglow() -> tuple[Networks, Objective, Batch]:
    audio = AudioConfig()
    networks = build_waveglow(WaveGlowConfig(), audio, None)
    return networks, WaveGlowObjective(WaveGlowOptions(), audio), WaveGlowBatch(NAMES, torch.zeros(BATCH, 16000), 256)


def _jasper() -> tuple[Networks, Objective, Batch]:
    settings = load_config(Path("jasper10x5dr_speedp-online_speca.yaml"))
    waves, tokens = torch.zeros(BATCH, 160_000), torch.ones(BATCH, 100, dtype=torch.int64)
    lengths = torch.full((BATCH,), 160_000), torch.full((BATCH,), 100)
    batch = JasperBatch(NAMES, waves, lengths[0], tokens, lengths[1], hop_length=160, n_samples=160_000)
    return {"jasper": Jasper(settings.model)}, JasperObjective(Augmentation(dither=0.0)), batch


CASES = {
    "FastPitch 1.0": _fastpitch,
    "FastPitch 1.1": partial(_fastpitch, learned_alignment=True, energy_conditioning=True),
    "HiFi-GAN": _hifigan,
    "WaveGlow": _waveglow,
    "Jasper": _jasper,
}


def update(name: str) -> Layouts:
    """Forward and backward passes of all phases of an update."""
    with META:
        networks, objective, batch = CASES[name]()
    with Layouts() as layouts:
        for phase in objective.phases:
            numerators = objective.numerators(phase.name, networks, batch)
            torch.stack([one for one in numerators.values() if one.requires_grad]).sum().backward()
    return layouts


@pytest.mark.parametrize("name", CASES)
def test_no_convolution_reads_what_its_kernel_must_copy(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # the meta device has none
    monkeypatch.setattr("torch.nn.functional.ctc_loss", lambda log_probs, *_, **__: log_probs.sum((0, 2)))  # neither
    layouts = update(name)
    print(
        f"{name}: {layouts.read / BATCH / 1e6:.1f} MB read an item, {sum(layouts.copied.values()) / BATCH / 1e6:.1f}"
        f" copied by kernels, {layouts.relaid / BATCH / 1e6:.1f} by our code"
    )
    assert not layouts.copied
    assert layouts.relaid < 0.04 * layouts.read, "inputs of the network alone, and gradients of attention"


@pytest.mark.parametrize("name", CASES)
def test_so_it_is_on_a_gpu_in_bfloat16(gpu: FakeGpu, name: str):
    with META:
        networks, objective, batch = CASES[name]()
    for part in (*networks.values(), *vars(objective).values()):
        if isinstance(part, nn.Module):
            gpu.on_device(part)
    batch = gpu.on_device(batch)
    with gpu.watch(), Layouts() as layouts, torch.autocast("cuda", dtype=torch.bfloat16):
        for phase in objective.phases:
            objective.numerators(phase.name, networks, batch)
    assert layouts.read and not layouts.copied


@pytest.mark.parametrize("case", TINY_CASES, ids=lambda case: case.name)
def test_the_layout_of_a_gpu_changes_no_result(case: Case, monkeypatch: pytest.MonkeyPatch):
    found = []
    for is_last in (False, True):
        for module in (layers, discriminators, hifigan.model, waveglow.model):
            monkeypatch.setattr(module, "prefers_channels_last", lambda _, is_last=is_last: is_last)
        torch.manual_seed(0)
        networks, objective, batch = case.make()
        torch.manual_seed(1)
        values: dict[str, Tensor] = {}
        for phase in objective.phases:
            sums = objective.numerators(phase.name, networks, batch)
            torch.stack([one for one in sums.values() if one.requires_grad]).sum().backward()
            values |= {name: one.detach() for name, one in sums.items()}
        for network in networks.values():
            values |= {name: one.grad for name, one in network.named_parameters() if one.grad is not None}
        found.append(values)
    assert found[0].keys() == found[1].keys()
    for name, expected in found[0].items():
        difference = float((found[1][name] - expected).abs().max())
        assert difference <= 1e-4 * float(expected.abs().max()) + 1e-6, name
