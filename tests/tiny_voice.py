"""Checkpoints of a tiny voice and a tiny vocoder that fit each other, for tests of speaking."""

from dataclasses import replace
from pathlib import Path

import torch
from tiny_checkpoint import build, save_networks
from tiny_vocoder import TINY as VOCODER

from common.config import AudioConfig
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from fastpitch.config import ModelConfig
from fastpitch.model import FastPitch

AUDIO = AudioConfig(n_mels=16)
TEXT = TextConfig(speakers=("ann", "bob"))
SMALL = ModelConfig(  # of the usual mels
    symbols_embedding_dim=16,
    in_fft_n_layers=1,
    in_fft_conv1d_filter_size=16,
    in_fft_output_size=16,
    out_fft_n_layers=1,
    out_fft_conv1d_filter_size=16,
    out_fft_output_size=16,
)
MODEL = replace(
    SMALL,
    n_mel_channels=16,
    in_fft_d_head=8,
    out_fft_d_head=8,
    dur_predictor_filter_size=8,
    pitch_predictor_filter_size=8,
    energy_conditioning=True,
    energy_predictor_filter_size=8,
    n_speakers=2,
)
MEAN, STD = 200.0, 40.0  # Hz


def new_voice(model: ModelConfig, audio: AudioConfig, text: TextConfig, *, seed: int = 3) -> FastPitch:
    """A FastPitch of random weights whose symbols last about four frames and whose pitch is about ``MEAN``."""
    network = build("FastPitch", model, audio, text, seed=seed)["fastpitch"]
    with torch.no_grad():
        network.duration_predictor.fc.bias.fill_(1.6)
        network.proj.bias.fill_(-4.0)
        network.pitch_mean.fill_(MEAN)
        network.pitch_std.fill_(STD)
    return network.eval()


def save_voice(path: Path, *, text: TextConfig = TEXT, model: ModelConfig = MODEL, audio: AudioConfig = AUDIO) -> Path:
    """The checkpoint of a `new_voice`."""
    networks = {"fastpitch": new_voice(model, audio, text)}
    text = replace(text, speakers=text.speakers[: model.n_speakers])
    return save_networks(path, "FastPitch", model, networks, audio=audio, text=text)


def save_vocoder(path: Path, audio: AudioConfig = AUDIO) -> Path:
    """A HiFi-GAN of random weights for the voice's mels, or those of ``audio``."""
    config = replace(VOCODER, n_mel_channels=audio.n_mels)
    generator = build("HiFi-GAN", config, audio, seed=4)["generator"]
    return save_networks(path, "HiFi-GAN", config, {"generator": generator}, audio=audio)


def symbols_of(text: TextConfig) -> list[str]:
    """The symbols that a voice reads."""
    return TextFrontEnd(text).symbols


def with_symbols(n_symbols: int) -> ModelConfig:
    """The architecture for so many symbols."""
    return replace(MODEL, n_symbols=n_symbols)
