"""How many operations an update and a sentence launch on a GPU, counted on fake tensors, stay below written ceilings.

A network whose operations take less time than the host needs to launch them waits for the host. Counted are operations
that compute, most of which are one kernel; attention in its plain form; without the optimizer, whose number of kernels
does not depend on the model, and the copies that tests/test_convolution_layouts.py counts. `python -m pytest -s
tests/test_launches.py` prints the numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tiny_harmonic
import tiny_jasper
import tiny_tacotron2
import tiny_vocoder
import torch
from fake_cuda import DEVICE, FakeGpu, Watch, backward, gpu
from tiny import padded_priors
from tiny_checkpoint import build
from torch import nn

from common.config import AudioConfig
from common.data.batch import Batch
from common.nn import kernels
from common.precision import Precision
from common.registry import get_model
from common.synthesis.utterances import Controls
from common.training.objective import Objective
from fastpitch.config import ModelConfig as FastPitchConfig
from fastpitch.loss_function import FastPitchObjective
from fastpitch.model import FastPitchBatch
from fastpitch.prosody import regulate_length
from harmonic.config import ModelConfig as HarmonicConfig
from hifigan.config import ModelConfig as HifiganConfig
from jasper.loss_function import JasperObjective
from jasper.yaml_config import load_config
from tacotron2.config import ModelConfig as Tacotron2Config
from waveglow.arg_parser import TrainingOptions as WaveGlowOptions
from waveglow.config import ModelConfig as WaveGlowConfig
from waveglow.data_function import WaveGlowBatch
from waveglow.loss_function import WaveGlowObjective

__all__ = ["gpu"]

AUDIO = AudioConfig()
MIXED = Precision(DEVICE.type == "cuda", torch.bfloat16)
FRAMES = 20
SENTENCE = 128  # characters
SPEAKING = ("FastPitch", FastPitchConfig()), ("HiFi-GAN", HifiganConfig())


@dataclass(frozen=True)
class Case:
    """A model of full size, and the most that an update of it in bfloat16 may launch."""

    model: str
    config: Any
    objective: Objective
    batch: Callable[[int], Batch]  # of so many frames
    launches: int  # of an update on ``FRAMES`` frames
    a_frame: float = 0  # more for each further frame


def fastpitch_batch(n_frames: int, *, aligned: bool) -> FastPitchBatch:
    """Two utterances, with durations or with what they are learned from."""
    tokens, lengths, frames = torch.ones(2, 8, dtype=torch.int64), torch.tensor([8, 6]), torch.tensor([n_frames, 9])
    batch = FastPitchBatch(("a", "b"), tokens, lengths, torch.zeros(2, 80, n_frames), frames)
    if aligned:
        return replace(batch, durations=tokens, pitch=torch.ones(2, 8))
    prior = padded_priors(frames.tolist(), lengths.tolist())
    return replace(batch, pitch_frames=torch.ones(2, n_frames), prior=prior)


CASES = {
    "FastPitch 1.0": Case(
        "FastPitch",
        FastPitchConfig(),
        FastPitchObjective(energy=False, alignment=False),
        lambda n_frames: fastpitch_batch(n_frames, aligned=True),
        launches=1200,
    ),
    "FastPitch 1.1": Case(
        "FastPitch",
        FastPitchConfig(learned_alignment=True, energy_conditioning=True),
        FastPitchObjective(energy=True, alignment=True),
        lambda n_frames: fastpitch_batch(n_frames, aligned=False),
        launches=1520,
        a_frame=0.2,
    ),
    "Tacotron 2": Case(
        "Tacotron2",
        Tacotron2Config(),
        tiny_tacotron2.tacotron2_objective(),
        lambda n_frames: tiny_tacotron2.tiny_batch([(9, n_frames), (7, 8)], config=Tacotron2Config()),
        launches=2800,
        a_frame=79,
    ),
    "HiFi-GAN": Case(
        "HiFi-GAN",
        HifiganConfig(),
        tiny_vocoder.hifigan_objective(AUDIO),
        lambda n_frames: tiny_vocoder.segments(2, size=8192),
        launches=4200,
    ),
    "WaveGlow": Case(
        "WaveGlow",
        WaveGlowConfig(),
        WaveGlowObjective(WaveGlowOptions(), AUDIO),
        lambda n_frames: WaveGlowBatch(("a",), torch.zeros(1, 8000), AUDIO.hop_length),
        launches=4650,
    ),
    "Harmonic": Case(
        "Harmonic",
        HarmonicConfig(),
        tiny_harmonic.harmonic_objective(),
        lambda n_frames: tiny_harmonic.parts(2, AUDIO),
        launches=1150,
    ),
    "Jasper": Case(
        "Jasper",
        load_config(Path("jasper10x5dr_speedp-online_speca.yaml")).model,
        JasperObjective(tiny_jasper.NOTHING),
        lambda n_frames: tiny_jasper.utterances([320 * n_frames, 3200]),
        launches=1800,
    ),
}


@pytest.fixture(autouse=True)
def kernel_of_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is two operations: a tensor that it writes to, and itself."""
    found = {"best_moves": lambda log_probs: (log_probs + 1).transpose(0, 1) > 0}
    monkeypatch.setattr(kernels, "_usable", dict.fromkeys(found, True))
    monkeypatch.setattr(kernels, "_kernel", found.__getitem__)


def launches(seen: Watch) -> int:
    """All but copies into channels last, which convolutions write already, as cuDNN lays out their results."""
    return sum(seen.launches.values()) - seen.launches["clone in common/nn/layers.py:channels_last"]


def launches_of_update(gpu: FakeGpu, case: Case, n_frames: int) -> int:
    """Forward and backward passes of all phases."""
    # The harmonic vocoder's constants depend on values.
    make = gpu.make if case.model != "Harmonic" else lambda call: call()
    networks = make(lambda: build(case.model, case.config, AUDIO))
    for part in (*networks.values(), *vars(case.objective).values()):
        if isinstance(part, nn.Module):
            gpu.on_device(part.train())
    batch = gpu.on_device(case.batch(n_frames))
    with gpu.watch() as seen:
        case.objective.begin_step(networks)
        for phase in case.objective.phases:
            with MIXED.autocast():
                numerators = case.objective.numerators(phase.name, networks, batch)
            backward(sum((numerators[name] for name in case.objective.weights(phase.name, epoch=1)), torch.zeros(())))
    return launches(seen)


@pytest.mark.parametrize("name", CASES)
def test_an_update_launches_no_more_than_its_ceiling(gpu: FakeGpu, name: str):
    case = CASES[name]
    few, more = (launches_of_update(gpu, case, n_frames) for n_frames in (FRAMES, 2 * FRAMES))
    print(f"\n{name}: {few} launches an update of {FRAMES} frames, {(more - few) / FRAMES:g} a further frame")
    assert few <= case.launches
    assert more - few <= case.a_frame * FRAMES, "launches of further frames"


def test_a_sentence_launches_no_more_than_its_ceiling(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch):
    """FastPitch and HiFi-GAN, one text of 128 characters, in bfloat16 as `make_voice` makes them."""
    networks = [gpu.make(lambda name=name, config=config: build(name, config, AUDIO)) for name, config in SPEAKING]
    voice, vocoder = (next(iter(networks.values())) for networks in networks)
    for network in (voice, vocoder):
        gpu.on_device(network).prepare_for_inference()
        MIXED.cast_weights(network)
    monkeypatch.setattr("fastpitch.model.regulate_length", lambda *given: regulate_length(*given[:2], 5 * SENTENCE))
    tokens, lengths = gpu.on_device(torch.ones(1, SENTENCE, dtype=torch.int64)), gpu.on_device(torch.tensor([SENTENCE]))
    mel = gpu.on_device(torch.zeros(1, 80, 5 * SENTENCE))
    recorded: list[int] = []  # launches of the steps that CUDA graphs record

    def count(step: Callable[..., Any], *given: Any) -> Any:
        with gpu.watch() as seen:
            made = step(*given)
        recorded.append(launches(seen))
        return made

    for step in get_model("FastPitch").recordable:
        monkeypatch.setattr(voice, step, partial(count, getattr(voice, step)))
    counts, casts = [], []
    for infer in (lambda: voice.infer(tokens, lengths, Controls()), lambda: vocoder.infer(mel)):
        with gpu.watch() as seen, torch.no_grad(), MIXED.autocast():
            infer()
        counts.append(launches(seen))
        casts.append(sum(seen.launches[name] for name in seen.launches if name.startswith("_to_copy")))
    print(f"\n{SENTENCE} characters to sound: {counts} launches, {casts} of them casts")
    print(f"{counts[0] - sum(recorded)} of them, and {len(recorded) + 1} graphs, with --cuda-graphs")
    assert counts[0] <= 430 and counts[1] <= 210
    assert counts[0] - sum(recorded) <= 30
