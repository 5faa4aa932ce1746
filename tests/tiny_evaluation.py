"""Tiny checkpoints of a voice, a vocoder and a recognizer, and recordings, for tests of evaluation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import soundfile
import tiny_voice
from corpus import RATE, glide
from tiny_checkpoint import build, save_networks
from tiny_voice import save_vocoder

from common.config import AudioConfig
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from jasper.config import BlockConfig, FeatureConfig, ModelConfig as JasperConfig

AUDIO = AudioConfig()
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
    """Networks with random weights: the voice's symbols take about four frames of noise each."""
    audio = RECOGNIZER.features.audio
    recognizer = build("Jasper", RECOGNIZER, audio)
    return Tiny(
        _save_voice(folder / "voice.pt", TextConfig(speakers=("ann", "bob"))),
        _save_voice(folder / "phones.pt", TextConfig(input_type="phone", symbol_set="ipa", cleaners=())),
        save_vocoder(folder / "vocoder.pt", AUDIO),
        save_networks(folder / "recognizer.pt", "Jasper", RECOGNIZER, recognizer, audio=audio),
    )


def _save_voice(path: Path, text: TextConfig) -> Path:
    n_symbols = TextFrontEnd(text).n_symbols
    model = replace(tiny_voice.MODEL, n_mel_channels=AUDIO.n_mels, energy_conditioning=False, n_symbols=n_symbols)
    return tiny_voice.save_voice(path, text=text, model=model, audio=AUDIO)


def write_recordings(folder: Path, names: Sequence[str], *, rate: int = RATE) -> None:
    """A gliding tone of half a second under each name."""
    for index, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        wave = glide(0.6, low=110 + 5 * index, rate=rate) + 0.003 * np.random.default_rng(index).standard_normal(
            round(0.6 * rate)
        )
        soundfile.write(path, wave, rate, subtype="PCM_16")
