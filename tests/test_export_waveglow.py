"""Exported WaveGlows make the sound that the checkpoint makes of the same noise, in every format."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
import tiny_voice
import tiny_waveglow
import torch
from test_export import SUFFIXES, VOICE

import inference
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from scripts import checkpoint_tools
from waveglow.model import WaveGlow

AUDIO = replace(tiny_waveglow.TINY_AUDIO, n_mels=tiny_voice.AUDIO.n_mels)


def save(path: Path) -> None:
    """A small WaveGlow's checkpoint, of mels of AUDIO."""
    torch.manual_seed(0)
    config = replace(tiny_waveglow.SMALL, n_mel_channels=AUDIO.n_mels)
    flows = tiny_waveglow.lively(WaveGlow(config, hop_length=AUDIO.hop_length))
    with torch.no_grad():
        flows.convinv[0].conv.weight.mul_(8)  # its inverse makes the sound, which is to stay within full scale
    save_checkpoint(path, Checkpoint("WaveGlow", config, AUDIO, None, {"waveglow": flows.state_dict()}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A voice, and a WaveGlow that fits it, as checkpoint and in every format."""
    made = tmp_path_factory.mktemp("waveglow")
    tiny_voice.save_voice(made / "voice.pt", model=VOICE, audio=AUDIO)
    save(made / "WaveGlow.pt")
    for kind in (*SUFFIXES, "torchscript"):  # whose difference from PyTorch the command measures
        checkpoint_tools.export([str(made / "WaveGlow.pt"), "--format", kind])
    return made


@pytest.mark.parametrize("options", ["--seed 7 --sigma-infer 0.4", "--denoising-strength 0.1"])
def test_inference_speaks_with_every_format_as_with_the_checkpoint(folder: Path, tmp_path: Path, options: str):
    sounds = []
    for suffix in (".pt", *SUFFIXES.values()):
        models = ["--fastpitch", str(folder / "voice.pt"), "--waveglow", str(folder / f"WaveGlow{suffix}")]
        words = [*models, "--text", "two words", *options.split(), "-o", str(tmp_path / suffix)]
        assert inference.main(words) == 0
        sounds.append(soundfile.read(tmp_path / suffix / "speech.wav")[0])
    assert np.abs(sounds[0]).max() > 0.05
    for sound in sounds[1:]:
        np.testing.assert_allclose(sound, sounds[0], atol=4e-5)
