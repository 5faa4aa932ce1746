"""Every model on a GPU that computes nothing (`fake_cuda`): all work is on the device, and nothing waits for it.

What fake tensors do not show: waits inside the kernels of libraries.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import tiny_harmonic
import tiny_jasper
import tiny_tacotron2
import tiny_vocoder
import tiny_voice
import tiny_waveglow
import torch
from fake_cuda import DEVICE, FakeGpu, gpu
from tiny import padded_priors
from torch import nn

from common.config import AudioConfig
from common.data.batch import Batch
from common.nn import discriminators
from common.precision import Precision
from common.training.objective import Networks, Objective
from fastpitch.loss_function import FastPitchObjective
from fastpitch.model import FastPitch, FastPitchBatch
from jasper import augmentation
from jasper.augmentation import Augmentation, CutoutAugment, SpecAugment
from jasper.loss_function import JasperObjective
from waveglow.model import build_networks as build_waveglow

__all__ = ["gpu"]

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
        objective = FastPitchObjective(energy=config.energy_conditioning, alignment=aligns)
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


@pytest.fixture(autouse=True)
def one_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other two of HiFi-GAN's discriminators are the same again."""
    monkeypatch.setattr(discriminators, "_N_SCALES", 1)


def on_device(gpu: FakeGpu, case: Case) -> tuple[Networks, Objective, Any]:
    """A model in training mode, its objective and a batch, with the constants that the first step takes there."""
    networks, objective, batch = case.make()
    for network in networks.values():
        gpu.on_device(network.train())
    for part in vars(objective).values():
        if isinstance(part, nn.Module):
            gpu.on_device(part)
    with gpu.watch():
        augmentation._noise(DEVICE)
    return networks, objective, gpu.on_device(batch)


@of_every_model
@in_every_precision
def test_a_training_step_is_on_the_device_alone(gpu: FakeGpu, case: Case, dtype: torch.dtype | None):
    networks, objective, batch = on_device(gpu, case)
    with gpu.watch() as seen:
        objective.begin_step(networks)
        for phase in objective.phases:
            counts = objective.counts(phase.name, batch)
            with Precision(DEVICE.type == "cuda", dtype).autocast():
                numerators = objective.numerators(phase.name, networks, batch)
            assert set(numerators) <= set(counts)
            assert {(value.dtype, value.shape) for value in numerators.values()} == {(torch.float32, ())}
            assert {count.device for count in counts.values()} == {DEVICE}
    assert seen.waits == []
    assert not seen.uploads
    assert not seen.on_host
    if dtype is None:
        assert set(seen.products) == {torch.float32}
    else:
        assert seen.products[torch.float32] - {ATTENTION} == case.exact
        assert seen.products[dtype]


def test_what_goes_into_waveglows_wave_is_not_rounded(gpu: FakeGpu):
    config, mixed = replace(tiny_waveglow.SMALL, n_flows=3, wn_layers=2), Precision(cuda=True, amp_dtype=torch.bfloat16)
    network = build_waveglow(config, tiny_waveglow.TINY_AUDIO, None)["waveglow"]
    network.prepare_for_inference()
    mixed.cast_weights(network)
    audio = tiny_waveglow.TINY_AUDIO
    shapes = (1, audio.n_mels, 6), (1, config.n_group, 6 * audio.hop_length // config.n_group)
    mel, z = (gpu.on_device(torch.zeros(shape)) for shape in shapes)
    gpu.on_device(network)
    with gpu.watch() as seen, mixed.autocast():
        assert network.inverse(mel, z).dtype == torch.float32
    assert seen.products[torch.float64] == {"waveglow/model.py:forward"}  # float32 may be TF32
    assert seen.products[torch.float32] == {"waveglow/model.py:forward"}
