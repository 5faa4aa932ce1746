"""Tiny checkpoints of a voice, a vocoder and a recognizer, and recordings, for tests of evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import soundfile
import torch
from corpus import RATE, glide
from tiny_tacotron2 import TINY as TINY_TACOTRON2
from tiny_vocoder import TINY
from tiny_waveglow import SMALL

from common.checkpoints import Checkpoint, save_checkpoint
from common.config import AudioConfig, TextConfig, to_plain
from common.text import TextFrontEnd
from fastpitch.config import ModelConfig as FastPitchConfig
from fastpitch.model import build_networks as build_fastpitch
from hifigan.model import build_networks as build_hifigan
from jasper.config import BlockConfig, FeatureConfig, ModelConfig as JasperConfig
from jasper.model import build_networks as build_jasper
from tacotron2.model import build_networks as build_tacotron2
from waveglow.model import build_networks as build_waveglow

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
RECOGNIZER = JasperConfig(
    blocks=(BlockConfig(filters=16, repeat=1, stride=2, residual=False),), features=FeatureConfig(sample_rate=8000)
)


@dataclass(frozen=True)
class Tiny:
    """Paths of the checkpoints."""

    voice: Path
    phone_voice: Path
    vocoder: Path
    recognizer: Path


def make_checkpoints(folder: Path) -> Tiny:
    """Networks with random weights: the voice's symbols take about five frames of noise each."""
    return Tiny(
        _save_voice(folder / "voice.pt", TextConfig(speakers=("ann", "bob"))),
        _save_voice(folder / "phones.pt", TextConfig(input_type="phone", symbol_set="ipa", cleaners=())),
        save_vocoder(folder / "vocoder.pt", AUDIO),
        _save_recognizer(folder / "recognizer.pt"),
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


def save_other_models(folder: Path) -> tuple[Path, Path]:
    """A Tacotron 2, whose utterances are cut after 40 frames, and a WaveGlow."""
    text = TextConfig()
    options = {"n_mel_channels": AUDIO.n_mels, "n_symbols": TextFrontEnd(text).n_symbols, "max_decoder_steps": 40}
    tacotron2 = replace(TINY_TACOTRON2, **options)
    torch.manual_seed(0)
    network = build_tacotron2(tacotron2, AUDIO, text)["tacotron2"]
    with torch.no_grad():
        network.decoder.gate_layer.linear_layer.bias.fill_(-20.0)  # it never wants to end
    networks = {"tacotron2": network.state_dict()}
    save_checkpoint(folder / "t.pt", Checkpoint("Tacotron2", to_plain(tacotron2), AUDIO, text, networks))
    waveglow = replace(SMALL, n_mel_channels=AUDIO.n_mels)
    networks = {"waveglow": build_waveglow(waveglow, AUDIO, None)["waveglow"].state_dict()}
    save_checkpoint(folder / "w.pt", Checkpoint("WaveGlow", to_plain(waveglow), AUDIO, None, networks))
    return folder / "t.pt", folder / "w.pt"


def save_vocoder(path: Path, audio: AudioConfig) -> Path:
    """A HiFi-GAN that reads mels of ``audio``."""
    torch.manual_seed(0)
    networks = {"generator": build_hifigan(TINY, audio, None)["generator"].state_dict()}
    save_checkpoint(path, Checkpoint("HiFi-GAN", to_plain(TINY), audio, None, networks))
    return path


def _save_recognizer(path: Path) -> Path:
    torch.manual_seed(0)
    networks = {"jasper": build_jasper(RECOGNIZER, RECOGNIZER.features.audio, None)["jasper"].state_dict()}
    save_checkpoint(path, Checkpoint("Jasper", to_plain(RECOGNIZER), RECOGNIZER.features.audio, None, networks))
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
