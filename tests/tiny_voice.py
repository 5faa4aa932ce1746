"""Checkpoints of a tiny voice and a tiny vocoder that fit each other, for tests of speaking."""

from dataclasses import replace
from pathlib import Path

import torch
from tiny_vocoder import TINY as VOCODER

import hifigan.model
from common.checkpoints import Checkpoint, save_checkpoint
from common.config import AudioConfig, TextConfig, to_plain
from common.text import TextFrontEnd
from fastpitch.config import ModelConfig
from fastpitch.model import FastPitch, build_networks

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
    torch.manual_seed(seed)
    network = build_networks(model, audio, text)["fastpitch"]
    with torch.no_grad():
        network.duration_predictor.fc.bias.fill_(1.6)
        network.proj.bias.fill_(-4.0)
        network.pitch_mean.fill_(MEAN)
        network.pitch_std.fill_(STD)
    return network.eval()


def save_voice(path: Path, *, text: TextConfig = TEXT, model: ModelConfig = MODEL, audio: AudioConfig = AUDIO) -> Path:
    """The checkpoint of a `new_voice`."""
    weights = {"fastpitch": new_voice(model, audio, text).state_dict()}
    text = replace(text, speakers=text.speakers[: model.n_speakers])
    save_checkpoint(path, Checkpoint("FastPitch", to_plain(model), audio, text, weights))
    return path


def save_vocoder(path: Path) -> Path:
    """A HiFi-GAN of random weights for the voice's mels."""
    torch.manual_seed(4)
    config = replace(VOCODER, n_mel_channels=AUDIO.n_mels)
    networks = hifigan.model.build_networks(config, AUDIO, None, inference=True)
    weights = {name: network.state_dict() for name, network in networks.items()}
    save_checkpoint(path, Checkpoint("HiFi-GAN", to_plain(config), AUDIO, None, weights))
    return path


def symbols_of(text: TextConfig) -> list[str]:
    """The symbols that a voice reads."""
    return TextFrontEnd(text).symbols


def with_symbols(n_symbols: int) -> ModelConfig:
    """The architecture for so many symbols."""
    return replace(MODEL, n_symbols=n_symbols)
