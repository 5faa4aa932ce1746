"""A small harmonic vocoder with lively weights, and recordings of a gliding voice."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from tiny_checkpoint import save_networks
from torch import Tensor

from common.audio.mel import MelExtractor
from common.config import AudioConfig
from harmonic.arg_parser import TrainingOptions
from harmonic.config import ModelConfig
from harmonic.data_function import HarmonicBatch
from harmonic.loss_function import HarmonicObjective
from harmonic.model import HarmonicVocoder

AUDIO = AudioConfig()
SMALL = ModelConfig(n_channels=16, n_layers=2, pitch_channels=16)


def small_network(audio: AudioConfig = AUDIO, *, seed: int = 0) -> HarmonicVocoder:
    """A small network of a seed's weights, all of which matter."""
    torch.manual_seed(seed)
    network = HarmonicVocoder(replace(SMALL, n_mel_channels=audio.n_mels), audio)
    torch.nn.init.normal_(network.filter.end.weight, std=0.05)
    return network.eval()


def save_harmonic(path: Path, audio: AudioConfig = AUDIO, *, voiced: bool = False) -> Path:
    """A checkpoint of `small_network`; if ``voiced`` it takes every frame for such, and makes next to no noise."""
    network = small_network(audio)
    if voiced:
        with torch.no_grad():
            network.pitch.end.bias[-1] = 20.0
            network.filter.end.bias[network.filter.n_bins : 2 * network.filter.n_bins] = -9.0
    return save_networks(path, "Harmonic", network.config, {"harmonic": network}, audio=audio)


def options(folder: Path, **changes: Any) -> TrainingOptions:
    """Options of training with recordings in a folder."""
    defaults = {"segment_frames": 16, "seed": 1, "pitch_cache": None, "architecture": {}}
    defaults |= {"adversarial": False, "discriminators": {}, "input_mels_dir": None}
    return TrainingOptions(dataset_path=folder, **defaults | changes)


def harmonic_objective(audio: AudioConfig = AUDIO, **changes: Any) -> HarmonicObjective:
    """The objective of options that differ from the defaults by ``changes``."""
    return HarmonicObjective(TrainingOptions(**changes), audio)


def voice_of(pitch: Tensor, *, rate: int = 22050) -> Tensor:
    """pitch (T,) in Hz -> a wave (T,) of its first ten harmonics, falling."""
    phase = 2 * torch.pi * (pitch.double() / rate).cumsum(0)
    return (0.2 * sum(torch.sin(k * phase) / k for k in range(1, 11))).float()


def speech_mel(n_frames: int = 120, audio: AudioConfig = AUDIO) -> Tensor:
    """The mel (1, n_mels, n_frames) of a gliding voice with a noisy, unvoiced middle."""
    n_samples = n_frames * audio.hop_length
    generator = torch.Generator().manual_seed(0)
    wave = voice_of(torch.linspace(120, 240, n_samples), rate=audio.sampling_rate)
    third = slice(n_samples // 3, n_samples // 2)
    wave[third] = 0.05 * torch.randn(n_samples, generator=generator)[third]
    return MelExtractor(audio)(wave[None])[:, :, :n_frames]


def parts(count: int, audio: AudioConfig, *, n_frames: int = 40) -> HarmonicBatch:
    """A batch of noisy parts of ``n_frames`` frames, half of which is the segment."""
    n_samples, n_segment = ((size - 1) * audio.hop_length + audio.filter_length for size in (n_frames, n_frames // 2))
    generator = torch.Generator().manual_seed(0)
    return HarmonicBatch(
        names=tuple(map(str, range(count))),
        audio=0.1 * torch.randn(count, n_samples, generator=generator),
        n_samples=((n_frames - 1) * audio.hop_length,) * count,  # those that have the pitch's frames
        pitch=torch.full((count, n_frames), 200.0),
        voicing=(torch.arange(n_frames) % 4 < 2).float().expand(count, -1).clone(),
        noise=torch.randn(count, 2, n_segment, generator=generator),
        mel_noise=torch.zeros(count, audio.n_mels, n_frames),
    )
