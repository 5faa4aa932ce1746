"""What the training benchmarks train: each full-size model with its losses and optimizer, and made-up data for it."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import fastpitch.model as fastpitch
import hifigan.model as hifigan
import jasper.model as jasper
import tacotron2.model as tacotron2
import waveglow.model as waveglow
from common.cli import positive_float, positive_int
from common.config import AudioConfig
from common.data.batch import Batch
from common.training.engine import EngineOptions
from common.training.objective import Objective
from common.training.optim import Schedule, exponential_schedule, inverse_sqrt_schedule
from fastpitch.data_function import FastPitchBatch
from fastpitch.loss_function import FastPitchObjective
from hifigan.data_function import HifiganBatch
from hifigan.loss_function import HifiganObjective
from jasper.batch import JasperBatch
from jasper.loss_function import JasperObjective
from jasper.yaml_config import CONFIGS, load_config
from scripts.benchmarks.random_recognizer import LETTERS_A_SECOND, durations
from tacotron2.data_function import Tacotron2Batch
from tacotron2.loss_function import Tacotron2Objective
from waveglow.data_function import WaveGlowBatch
from waveglow.loss_function import WaveGlowObjective

MODELS = ("FastPitch", "HiFi-GAN", "Tacotron2", "WaveGlow", "Jasper")
VOCODERS = ("HiFi-GAN", "WaveGlow")
FRAMES = (150, 860)  # of an utterance, as LJSpeech's
_FRAMES_A_CHARACTER = 5.7
_N_MELS = AudioConfig().n_mels

MakeBatch = Callable[[Sequence[int], torch.Generator], Batch]
DrawLengths = Callable[[int, torch.Generator], list[int]]


def uniform_lengths(count: int, generator: torch.Generator) -> list[int]:
    """Frames of ``count`` utterances for synthesis."""
    return torch.randint(FRAMES[0], FRAMES[1] + 1, (count,), generator=generator).tolist()


@dataclass(frozen=True)
class Setting:
    """One line of a table."""

    name: str
    amp_dtype: torch.dtype | None = None
    plain: bool = False  # as the original does it
    tf32: bool = False
    amp_grouped_conv: bool = True  # of HiFi-GAN: grouped convolutions in mixed precision too


@dataclass(frozen=True)
class Subject:
    """A model to be trained."""

    networks: dict[str, nn.Module]
    objective: Objective
    optimizer: dict[str, Any]  # arguments of common.optim.build_optimizer
    schedule: Schedule
    make_batch: MakeBatch  # of utterances of these lengths (frames; a vocoder's segments: samples)
    options: EngineOptions = field(default_factory=EngineOptions)
    draw_lengths: DrawLengths = uniform_lengths  # of so many utterances (frames)


def add_arguments(parser: argparse.ArgumentParser, *, model: str) -> None:
    """Add which model, by default ``model``, and of which size."""
    parser.add_argument("-m", "--model", choices=MODELS, default=model, help="what to train")
    parser.add_argument("--preset", choices=tuple(hifigan.PRESETS), default="v1", help="of HiFi-GAN")
    parser.add_argument("--wn-channels", type=positive_int, default=512, help="of WaveGlow")
    parser.add_argument(
        "--segment-length", type=positive_int, help="samples of a vocoder's segment; as published if not given"
    )
    parser.add_argument(
        "--model-config",
        type=Path,
        default=CONFIGS / "jasper10x5dr_speedp-online_speca.yaml",
        help="YAML file of Jasper's network, features and augmentation",
    )
    parser.add_argument("--max-duration", type=positive_float, default=16.7, help="of Jasper's longest utterance, s")


def segment_length(args: argparse.Namespace) -> int:
    """Samples of a vocoder's segment."""
    return args.segment_length or {"HiFi-GAN": 8192, "WaveGlow": 8000}[args.model]


def build(setting: Setting, args: argparse.Namespace) -> Subject:
    """The model of the options, new, with the published optimizer."""
    build_one = {
        "FastPitch": _fastpitch,
        "HiFi-GAN": _hifigan,
        "Tacotron2": _tacotron2,
        "WaveGlow": _waveglow,
        "Jasper": _jasper,
    }
    subject = build_one[args.model](setting, args)
    return replace(subject, options=replace(subject.options, amp_dtype=setting.amp_dtype))


def _fastpitch(setting: Setting, args: argparse.Namespace) -> Subject:
    config = fastpitch.ModelConfig(mask_convolutions=not setting.plain)
    return Subject(
        networks=fastpitch.build_networks(config, AudioConfig(), None),
        objective=FastPitchObjective(),
        optimizer={"name": "lamb", "learning_rate": 0.1, "weight_decay": 1e-6},
        schedule=inverse_sqrt_schedule(0.1, warmup_steps=1000),
        make_batch=_fastpitch_batch,
        options=EngineOptions(grad_clip=1000.0),
    )


def _hifigan(setting: Setting, args: argparse.Namespace) -> Subject:
    audio = AudioConfig(framing="aligned", peak=0.95)
    networks = hifigan.build_networks(hifigan.PRESETS[args.preset], audio, None)
    networks["msd"].amp_grouped_conv = setting.amp_grouped_conv
    rate = 3e-4
    return Subject(
        networks=networks,
        objective=HifiganObjective(audio, concat_fwd=not setting.plain),
        optimizer={"name": "adamw", "learning_rate": rate, "weight_decay": 0.01, "betas": (0.8, 0.99), "eps": 1e-8},
        schedule=exponential_schedule(rate, decay=0.9998),
        make_batch=_segments,
    )


def _tacotron2(setting: Setting, args: argparse.Namespace) -> Subject:
    config = tacotron2.ModelConfig(mask_convolutions=not setting.plain)
    return Subject(
        networks=tacotron2.build_networks(config, AudioConfig(), None),
        objective=Tacotron2Objective(mask_padding=not setting.plain),
        optimizer={"name": "adam", "learning_rate": 1e-3, "weight_decay": 1e-6, "betas": (0.9, 0.999), "eps": 1e-8},
        schedule=lambda iteration, epoch: 1e-3,
        make_batch=_tacotron2_batch,
        options=EngineOptions(grad_clip=1.0),
    )


def _waveglow(setting: Setting, args: argparse.Namespace) -> Subject:
    config = waveglow.ModelConfig(wn_channels=args.wn_channels)
    return Subject(
        networks=waveglow.build_networks(config, AudioConfig(), None),
        objective=WaveGlowObjective(AudioConfig()),
        optimizer={"name": "adam", "learning_rate": 1e-4, "weight_decay": 0.0, "betas": (0.9, 0.999), "eps": 1e-8},
        schedule=lambda iteration, epoch: 1e-4,
        make_batch=_waveglow_segments,
    )


def _jasper(setting: Setting, args: argparse.Namespace) -> Subject:
    settings = load_config(args.model_config)
    model, augmentation = settings.model, settings.train.augmentation
    features = model.features
    frames_a_second = features.sample_rate / features.hop_length

    def draw_lengths(count: int, generator: torch.Generator) -> list[int]:
        random = np.random.default_rng(generator.initial_seed())
        return [round(seconds * frames_a_second) for seconds in durations(count, args.max_duration, random)]

    def make_batch(lengths: Sequence[int], generator: torch.Generator) -> JasperBatch:
        n_samples = torch.tensor(lengths) * features.hop_length
        seconds = n_samples / features.sample_rate
        token_lengths = (seconds * LETTERS_A_SECOND).long().clamp(min=1)
        waves = _wave(n_samples.tolist(), generator)
        inside = torch.arange(waves.size(1)) < n_samples.unsqueeze(1)
        return JasperBatch(
            names=_names(len(lengths)),
            waves=waves * inside,
            wave_lengths=n_samples,
            tokens=torch.randint(len(model.labels), (len(lengths), int(token_lengths.max())), generator=generator),
            token_lengths=token_lengths,
            hop_length=features.hop_length,
            draws=torch.rand(len(lengths), augmentation.n_draws, generator=generator),
        )

    return Subject(
        networks=jasper.build_networks(model, features.audio, None),
        objective=JasperObjective(augmentation),
        optimizer={
            "name": "novograd",
            "learning_rate": 0.01,
            "weight_decay": 1e-3,
            "betas": (0.95, 0.0),
            "eps": 1e-8,
        },
        schedule=lambda iteration, epoch: 1e-4,  # noise has nothing to teach; large steps would only diverge
        make_batch=make_batch,
        draw_lengths=draw_lengths,
    )


def _text(lengths: Sequence[int], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Made-up symbols (B, L) of utterances of so many frames, and how many of each."""
    counts = torch.tensor([max(round(length / _FRAMES_A_CHARACTER), 1) for length in lengths])
    return torch.randint(1, 148, (len(lengths), int(counts.max())), generator=generator), counts


def _mels(lengths: Sequence[int], generator: torch.Generator) -> Tensor:
    return torch.randn(len(lengths), _N_MELS, max(lengths), generator=generator) - 5


def _names(count: int) -> tuple[str, ...]:
    return tuple(f"made up {index}" for index in range(count))


def _fastpitch_batch(lengths: Sequence[int], generator: torch.Generator) -> FastPitchBatch:
    tokens, token_lengths = _text(lengths, generator)
    durations = torch.zeros(tokens.shape, dtype=torch.int64)
    for row, (length, count) in enumerate(zip(lengths, token_lengths.tolist())):
        durations[row, :count] = torch.linspace(0, length, count + 1).round().long().diff()
    return FastPitchBatch(
        names=_names(len(lengths)),
        tokens=tokens,
        token_lengths=token_lengths,
        mels=_mels(lengths, generator),
        mel_lengths=torch.tensor(lengths),
        durations=durations,
        pitch=torch.randn(tokens.shape, generator=generator),
    )


def _tacotron2_batch(lengths: Sequence[int], generator: torch.Generator) -> Tacotron2Batch:
    tokens, token_lengths = _text(lengths, generator)
    mels = _mels(lengths, generator)
    for row, (length, count) in enumerate(zip(lengths, token_lengths.tolist())):
        tokens[row, count:] = 0
        mels[row, :, length:] = 0.0
    return Tacotron2Batch(_names(len(lengths)), tokens, token_lengths, mels, torch.tensor(lengths))


def _wave(lengths: Sequence[int], generator: torch.Generator) -> Tensor:
    return 0.3 * torch.randn(len(lengths), max(lengths), generator=generator).clamp(-3, 3)


def _segments(lengths: Sequence[int], generator: torch.Generator) -> HifiganBatch:
    wave = _wave(lengths, generator)
    return HifiganBatch(_names(len(lengths)), wave, torch.tensor(lengths), AudioConfig().hop_length)


def _waveglow_segments(lengths: Sequence[int], generator: torch.Generator) -> WaveGlowBatch:
    return WaveGlowBatch(_names(len(lengths)), _wave(lengths, generator), AudioConfig().hop_length)
