"""Every model's training step on PyTorch's fake CUDA tensors, which have no values: all of it is on the device.

What asks such a tensor for a value, which would make the host wait for a GPU, raises. Waits inside the kernels of
libraries are not seen.
"""

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import tiny_harmonic
import tiny_jasper
import tiny_tacotron2
import tiny_vocoder
import tiny_voice
import tiny_waveglow
import torch
from tiny import padded_priors
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from common.config import AudioConfig
from common.data.batch import Batch
from common.nn import discriminators
from common.precision import Precision
from common.training.objective import Networks, Objective
from fastpitch.arg_parser import TrainingOptions
from fastpitch.loss_function import FastPitchObjective
from fastpitch.model import FastPitch, FastPitchBatch
from jasper.augmentation import Augmentation, CutoutAugment, SpecAugment
from jasper.loss_function import JasperObjective
from waveglow.model import build_networks as build_waveglow

# PyTorch without CUDA has one form of attention, which computes in float32; with it there are others.
ATTENTION = "fastpitch/transformer.py:_attend"


@dataclass(frozen=True)
class Case:
    """A model, how it is trained, and what of that is known to be in float32."""

    name: str
    make: Callable[[], tuple[Networks, Objective, Batch]]
    exact: frozenset[str] = frozenset()  # products in float32 under autocast, in training


def _fastpitch_case(name: str, **options: Any) -> Case:
    plain = {"n_mel_channels": 8, "n_symbols": 20, "n_speakers": 1, "energy_conditioning": False}
    config = replace(tiny_voice.MODEL, **plain | options)
    aligns = config.learned_alignment

    def make() -> tuple[Networks, Objective, Batch]:
        token_lengths, mel_lengths = torch.tensor([5, 4]), torch.tensor([6, 4])
        tokens, mels = torch.ones(2, 5, dtype=torch.int64), torch.zeros(2, 8, 6)
        batch = FastPitchBatch(("a", "b"), tokens, token_lengths, mels, mel_lengths)
        if aligns:
            prior = padded_priors(mel_lengths.tolist(), token_lengths.tolist())
            batch = replace(batch, pitch_frames=torch.ones(2, 6), prior=prior)
        else:
            batch = replace(batch, durations=torch.ones(2, 5, dtype=torch.int64), pitch=torch.ones(2, 5))
        if config.n_speakers > 1:
            batch = replace(batch, speakers=torch.tensor([0, 1]))
        objective = FastPitchObjective(TrainingOptions(architecture=config), AudioConfig())
        return {"fastpitch": FastPitch(config)}, objective, batch

    return Case(name, make, exact=frozenset(["fastpitch/aligner.py:squared_distances"] * aligns))


def _tacotron2() -> tuple[Networks, Objective, Batch]:
    network = tiny_tacotron2.tiny_network(postnet_n_convolutions=2, encoder_n_convolutions=1)
    batch = tiny_tacotron2.tiny_batch([(3, 1), (4, 2)], config=network.config)
    return {"tacotron2": network}, tiny_tacotron2.tacotron2_objective(), batch


def _hifigan() -> tuple[Networks, Objective, Batch]:
    config = replace(tiny_vocoder.TINY, mpd_periods=(2,), resblock="1")
    networks = tiny_vocoder.tiny_networks(config=config)
    return networks, tiny_vocoder.hifigan_objective(), tiny_vocoder.segments(2)


def _waveglow() -> tuple[Networks, Objective, Batch]:
    config = replace(tiny_waveglow.SMALL, n_flows=3, wn_layers=2)
    networks = build_waveglow(config, tiny_waveglow.TINY_AUDIO, None)
    return networks, tiny_waveglow.OBJECTIVE, tiny_waveglow.segments(2)


def _harmonic() -> tuple[Networks, Objective, Batch]:
    audio = AudioConfig(n_mels=6, hop_length=16, filter_length=64, win_length=64)
    network = tiny_harmonic.small_network(audio)
    batch = tiny_harmonic.parts(2, audio)
    return {"harmonic": network}, tiny_harmonic.harmonic_objective(audio), batch


def _jasper() -> tuple[Networks, Objective, Batch]:
    augmentation = Augmentation(spec_augment=SpecAugment(1, 0, 4, 1, 0, 4), cutout_augment=CutoutAugment(1, 2, 4, 2, 4))
    batch = tiny_jasper.utterances([3000, 2500], augmentation=augmentation)
    return {"jasper": tiny_jasper.small_network()}, JasperObjective(augmentation), batch


CASES = (
    _fastpitch_case("FastPitch 1.0"),
    _fastpitch_case(
        "FastPitch 1.1",
        learned_alignment=True,
        energy_conditioning=True,
        n_speakers=3,
        pitch_statistics_per_speaker=True,
    ),
    Case(
        "Tacotron 2", _tacotron2, frozenset(f"tacotron2/layers.py:{name}" for name in ("folded_weight", "read_padded"))
    ),
    Case(
        "HiFi-GAN",
        _hifigan,
        frozenset(
            [
                "common/audio/mel.py:of_spectrum",
                *(f"common/nn/weight_norm.py:{name}" for name in ("advance", "forward")),
                "hifigan/model.py:forward",  # the last convolution, which makes the samples
            ]
        ),
    ),
    Case("WaveGlow", _waveglow, frozenset(["common/audio/mel.py:of_spectrum", "waveglow/model.py:forward"])),
    Case("Harmonic", _harmonic, frozenset(["common/audio/mel.py:of_spectrum", "harmonic/model.py:forward"])),
    Case("Jasper", _jasper, frozenset(["jasper/features.py:_spectrum"])),
)
of_every_model = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
in_every_precision = pytest.mark.parametrize(
    "dtype", [None, torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.slow)], ids=str
)


DEVICE = torch.device("cuda", 0)
_CUDA, _META, _N_DEVICE_TYPES = 1, 14, 22  # c10/core/DeviceType.h
aten = torch.ops.aten
_PRODUCTS = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten.mv, aten.addmv, aten.dot, aten.convolution}
_ROOT = f"{Path(__file__).resolve().parents[1]}/"


class Watch(TorchDispatchMode):
    """Records where tensors of the host are made, and the dtypes of matrix products and convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.on_host: set[str] = set()
        self.products: dict[torch.dtype, set[str]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        made = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        if any(one.device.type != "cuda" and one.dim() > 0 for one in made):
            self.on_host.add(_place())
        if func.overloadpacket in _PRODUCTS:
            self.products.setdefault(made[0].dtype, set()).add(_place())
        return result


def _place() -> str:
    """The function of the project that is running: ``fastpitch/prosody.py:regulate_length``."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename.removeprefix(_ROOT)
        if not name.startswith(("/", ".venv/", "tests/", "<")):
            return f"{name}:{frame.f_code.co_name}"
        frame = frame.f_back
    return "the test"


@contextmanager
def _device_guard() -> Iterator[None]:
    """Where PyTorch has no CUDA, use the meta device's code for switching devices, which does nothing."""
    if torch.cuda._is_compiled():
        yield
        return
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    guards = (ctypes.c_void_p * _N_DEVICE_TYPES).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    guards[_CUDA] = guards[_META]
    try:
        yield
    finally:
        guards[_CUDA] = None


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeTensorMode]:
    """Fake tensors, and an autocast that believes in their GPU."""
    monkeypatch.setattr("torch.cuda.amp.common.amp_definitely_not_available", lambda: False)
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda *_, **__: True)
    monkeypatch.setattr("torch.backends.cudnn.is_acceptable", lambda _: False)  # it warns where there is none
    # PyTorch's has no fake form; on a GPU it reads the lengths.
    monkeypatch.setattr("torch.nn.functional.ctc_loss", lambda log_probs, *_, **__: log_probs.sum((0, 2)))
    # PyTorch's fake form of a fused LSTM cell refuses one without biases.
    monkeypatch.setattr("torch._meta_registrations.rnn_cell_checkSizes", lambda *_: None)
    monkeypatch.setattr(discriminators, "_N_SCALES", 1)  # the other two of HiFi-GAN's are the same again
    with _device_guard(), torch.backends.cudnn.flags(enabled=False):  # it would ask a driver
        yield FakeTensorMode()


def on_device(fakes: FakeTensorMode, value: Any) -> Any:
    """A batch, a tensor, or a module in place, on the device."""
    if isinstance(value, Batch):
        return value._with_tensors(lambda tensor: on_device(fakes, tensor))
    if isinstance(value, nn.Module):
        for module in value.modules():
            for named in (module._parameters, module._buffers):
                named |= {name: on_device(fakes, one) for name, one in named.items() if one is not None}
        return value
    fake = fakes.from_tensor(value.detach())
    with fakes:
        moved = torch.empty_like(fake, device=DEVICE)
    return nn.Parameter(moved, requires_grad=value.requires_grad) if isinstance(value, nn.Parameter) else moved


@of_every_model
@in_every_precision
def test_a_training_step_is_on_the_device_alone(fakes: FakeTensorMode, case: Case, dtype: torch.dtype | None):
    networks, objective, batch = case.make()
    for part in (*networks.values(), *vars(objective).values()):
        if isinstance(part, nn.Module):
            on_device(fakes, part.train())
    batch = on_device(fakes, batch)
    with fakes, Watch() as seen:
        objective.begin_step(networks)
        for phase in objective.phases:
            counts = objective.counts(phase.name, batch)
            with Precision(True, dtype).autocast():
                numerators = objective.numerators(phase.name, networks, batch)
            assert set(numerators) <= set(counts)
            assert {(value.dtype, value.shape) for value in numerators.values()} == {(torch.float32, ())}
            assert {count.device for count in counts.values()} == {DEVICE}
    assert not seen.on_host
    if dtype is None:
        assert set(seen.products) == {torch.float32}
    else:
        assert seen.products[torch.float32] - {ATTENTION} == case.exact
        assert seen.products[dtype]
