"""Tiny checkpoints of a voice, a vocoder and a recogniser, and recordings, for tests of evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import soundfile
import torch
from corpus import RATE, glide
from tiny_vocoder import TINY

from common.checkpoint import Checkpoint, save_checkpoint
from common.config import AudioConfig, TextConfig, to_plain
from common.text.front_end import TextFrontEnd
from fastpitch.model import ModelConfig as FastPitchConfig
from fastpitch.model import build_networks as build_fastpitch
from hifigan.model import build_networks as build_hifigan
from jasper.config import BlockConfig, FeatureConfig
from jasper.config import ModelConfig as JasperConfig
from jasper.model import build_networks as build_jasper

AUDIO = AudioConfig()
VOICE = FastPitchConfig(
    symbols_embedding_dim=16,
    in_fft_n_layers=1,
    in_fft_d_head=8,
    in_fft_conv1d_filter_size=16,
    in_fft_output_size=16,
    out_fft_n_layers=1,
    out_fft_d_head=8,
    out_fft_conv1d_filter_size=16,
    out_fft_output_size=16,
    dur_predictor_filter_size=8,
    pitch_predictor_filter_size=8,
    n_speakers=2,
)
EAR = JasperConfig(
    blocks=(BlockConfig(filters=16, repeat=1, stride=2, residual=False),), features=FeatureConfig(sample_rate=8000)
)


@dataclass(frozen=True)
class Tiny:
    """Paths of the checkpoints."""

    voice: Path
    phone_voice: Path
    vocoder: Path
    ear: Path


def make_checkpoints(folder: Path) -> Tiny:
    """Networks with random weights: the voice's symbols take about five frames of noise each."""
    return Tiny(
        _save_voice(folder / "voice.pt", TextConfig(speakers=("ann", "bob"))),
        _save_voice(folder / "phones.pt", TextConfig(input_type="phone", symbol_set="ipa", cleaners=())),
        save_vocoder(folder / "vocoder.pt", AUDIO),
        _save_ear(folder / "ear.pt"),
    )


def _save_voice(path: Path, text: TextConfig) -> Path:
    torch.manual_seed(0)
    config = replace(VOICE, n_symbols=TextFrontEnd(text).n_symbols)
    network = build_fastpitch(config, AUDIO, text)["fastpitch"]
    with torch.no_grad():
        network.duration_predictor.fc.bias.fill_(1.8)
        network.proj.bias.fill_(-4.0)
        network.pitch_mean.fill_(200.0)
        network.pitch_std.fill_(40.0)
    weights = {"fastpitch": network.state_dict()}
    save_checkpoint(path, Checkpoint("FastPitch", to_plain(config), AUDIO, text, weights))
    return path


def save_vocoder(path: Path, audio: AudioConfig) -> Path:
    """A HiFi-GAN that reads mels of ``audio``."""
    torch.manual_seed(0)
    networks = {"generator": build_hifigan(TINY, audio, None)["generator"].state_dict()}
    save_checkpoint(path, Checkpoint("HiFi-GAN", to_plain(TINY), audio, None, networks))
    return path


def _save_ear(path: Path) -> Path:
    torch.manual_seed(0)
    networks = {"jasper": build_jasper(EAR, EAR.features.audio, None)["jasper"].state_dict()}
    save_checkpoint(path, Checkpoint("Jasper", to_plain(EAR), EAR.features.audio, None, networks))
    return path


def write_recordings(folder: Path, names: Sequence[str], *, rate: int = RATE) -> None:
    """A gliding tone of half a second under each name."""
    for index, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        wave = glide(0.6, low=110 + 5 * index, rate=rate) + 0.003 * np.random.default_rng(index).standard_normal(
            round(0.6 * rate)
        )
        soundfile.write(path, wave, rate, subtype="PCM_16")
