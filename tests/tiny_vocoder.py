"""A tiny corpus of made-up recordings and a tiny HiFi-GAN, for tests of its training."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from corpus import RATE, glide
from tiny_checkpoint import build
from toy import split, toy_engine

from common.config import AudioConfig
from common.training.engine import Engine
from common.training.objective import Networks, Objective
from hifigan.arg_parser import TrainingOptions
from hifigan.config import ModelConfig
from hifigan.data_function import HifiganBatch
from hifigan.loss_function import HifiganObjective

ALIGNED = AudioConfig(framing="aligned", peak=0.95)
DEFAULTS = TrainingOptions(segment_size=8192, seed=1234, concat_fwd=False)
RECIPE = {"optimizer": "adamw", "learning_rate": 3e-4, "weight_decay": 0.01, "betas": (0.8, 0.99), "eps": 1e-8}
TINY = ModelConfig(
    resblock="2",
    upsample_rates=(8, 8, 4),
    upsample_kernel_sizes=(16, 16, 8),
    upsample_initial_channel=8,
    resblock_kernel_sizes=(3,),
    resblock_dilation_sizes=((1, 3),),
    mpd_periods=(2, 3),
    mpd_channels=(2, 4, 4, 4, 4),
    msd_channels=(2, 2, 4, 4, 4, 4, 4),
    msd_groups=(1, 1, 2, 2, 2, 2, 1),
)
TINY_DISCRIMINATORS = (
    "--mpd-periods 2 3 --mpd-channels 2 4 4 4 4 --msd-channels 2 2 4 4 4 4 4 --msd-groups 1 1 2 2 2 2 1"
).split()
TINY_OPTIONS = [
    *"-m HiFi-GAN --preset v3 --upsample-initial-channel 8 --resblock-kernel-sizes 3".split(),
    *["--resblock-dilation-sizes", "1,3", *TINY_DISCRIMINATORS, "--segment-size", "2048"],
]


def make_recordings(folder: Path, *, count: int = 20, val: int = 4, seconds: float = 0.35) -> Path:
    """Recordings of different pitch, loudness and length, with the lists train.txt and val.txt."""
    generator = np.random.default_rng(0)
    (folder / "wavs").mkdir(parents=True)
    lines = []
    for index in range(count):
        low = 100 + 10 * (index % 7)
        wave = glide(seconds * (1 + index % 5 / 10), low=low, high=1.5 * low) * (0.4 + index % 4 / 5)
        wave += 0.003 * generator.standard_normal(len(wave))
        soundfile.write(folder / "wavs" / f"r{index:02d}.wav", wave, RATE, subtype="PCM_16")
        lines.append(f"wavs/r{index:02d}.wav\n")
    (folder / "train.txt").write_text("".join(lines[val:]))
    (folder / "val.txt").write_text("".join(lines[:val]))
    return folder


def hifigan_objective(audio: AudioConfig = ALIGNED, **changes: Any) -> HifiganObjective:
    """The objective of options that differ from the defaults by ``changes``."""
    return HifiganObjective(replace(DEFAULTS, **changes), audio)


def train_options(corpus: Path, output: Path, *extra: str) -> list[str]:
    """Options of train.py for a tiny HiFi-GAN on a tiny corpus."""
    lists = ["--training-files", str(corpus / "train.txt"), "--validation-files", str(corpus / "val.txt")]
    run = ["-bs", "4", "--validation-interval", "99", "--samples-interval", "99"]
    return ["-o", str(output), "-d", str(corpus), *lists, *TINY_OPTIONS, *run, *extra]


def tiny_networks(*, seed: int = 0, config: ModelConfig = TINY) -> Networks:
    """Generator and discriminators with weights of a seed."""
    return build("HiFi-GAN", config, ALIGNED, seed=seed)


def segments(count: int, *, seed: int = 0, size: int = 2048, hop: int = 256) -> HifiganBatch:
    """A batch of noisy tones."""
    generator = torch.Generator().manual_seed(seed)
    pitch = 0.02 + 0.05 * torch.rand(count, 1, generator=generator)
    wave = 0.5 * torch.sin(pitch * torch.arange(size)) + 0.02 * torch.randn(count, size, generator=generator)
    names = tuple(f"s{seed}.{index}" for index in range(count))
    return HifiganBatch(names, wave, torch.full((count,), size), hop)


def cut(batch: HifiganBatch, sizes: tuple[int, ...]) -> list[HifiganBatch]:
    """The same segments, of one length, in micro-batches of these sizes."""
    rows = zip(*(split(value, sizes) for value in (batch.names, batch.audio, batch.audio_lengths)))
    return [replace(batch, names=names, audio=audio, audio_lengths=lengths) for names, audio, lengths in rows]


def vocoder_engine(networks: Networks, objective: Objective | None = None, **options: Any) -> Engine:
    """An engine with the published optimizers, but for what ``options`` say, at a constant rate."""
    return toy_engine(networks, objective=objective or hifigan_objective(), **RECIPE | options)
