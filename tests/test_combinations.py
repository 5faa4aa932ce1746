"""Every text-to-mel model speaks through every vocoder from one command line."""

from pathlib import Path
from typing import Any

import pytest
import tiny_voice
import torch
from foreign import WAVEGLOW
from tiny_checkpoint import build, save_networks
from tiny_tacotron2 import speaking_network
from tiny_waveglow import lively
from torch import Tensor

import inference
from common.audio.mel import griffin_lim
from common.audio.wav import load_wav
from common.checkpoints.loading import load_for_inference, open_checkpoint
from common.synthesis.utterances import Controls
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd

AUDIO, TEXT = tiny_voice.AUDIO, TextConfig()
TEXTS = ("Go on.", "A longer one, by far.", "Hm?")
SEED = 1234  # of inference.py
TWO_STEPS = 2 / 32768  # of 16 bits


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint of each model, by the option that it is given with."""
    folder = tmp_path_factory.mktemp("checkpoints")
    tacotron2 = speaking_network(n_mel_channels=AUDIO.n_mels, n_symbols=TextFrontEnd(TEXT).n_symbols)
    parts = {"tacotron2": tacotron2}
    waveglow = lively(build("WaveGlow", WAVEGLOW, AUDIO)["waveglow"])
    return {
        "--fastpitch": tiny_voice.save_voice(folder / "f.pt", text=TEXT),
        "--tacotron2": save_networks(folder / "t.pt", "Tacotron2", tacotron2.config, parts, audio=AUDIO, text=TEXT),
        "--hifigan": tiny_voice.save_vocoder(folder / "h.pt"),
        "--waveglow": save_networks(folder / "w.pt", "WaveGlow", WAVEGLOW, {"waveglow": waveglow}, audio=AUDIO),
    }


def network(path: Path) -> Any:
    return load_for_inference(open_checkpoint(path), device=torch.device("cpu"))[0]


def expected_wave(vocoder: Path | None, mel: Tensor) -> Tensor:
    """The sound of a mel alone, scaled down where it is too loud."""
    if vocoder is None:
        wave = griffin_lim(mel, AUDIO, n_iter=3, seed=SEED)
    else:
        settings = {"seed": SEED, "sigma": 0.9} if vocoder.stem == "w" else {}
        wave = network(vocoder).infer(mel[None], None, **settings)[0]
    return wave / max(1.0, float(wave.abs().max()))


@pytest.mark.parametrize("vocoder", ["--hifigan", "--waveglow", None])
@pytest.mark.parametrize("generator", ["--fastpitch", "--tacotron2"])
@torch.no_grad()
def test_every_combination_speaks(checkpoints: dict[str, Path], tmp_path: Path, generator: str, vocoder: str | None):
    (tmp_path / "list.txt").write_text("\n".join(TEXTS))
    words = f"-i {tmp_path}/list.txt -o {tmp_path}/out --save-mels --fade-out 0 --griffin-lim-iters 3".split()
    if vocoder is not None:
        words[-2:] = [vocoder, str(checkpoints[vocoder])]
    assert inference.main([generator, str(checkpoints[generator]), *words]) in (0, 1)  # 1: no text was ended
    for number, text in enumerate(TEXTS, 1):
        mel = torch.load(tmp_path / f"out/mels/audio_{number:04d}.pt")
        tokens = torch.tensor([TextFrontEnd(TEXT).encode(text)])
        alone = network(checkpoints[generator]).infer(tokens, torch.tensor([tokens.size(1)]), Controls(seed=SEED))
        torch.testing.assert_close(mel, alone.mel[0], rtol=0, atol=1e-5)
        wave = load_wav(tmp_path / f"out/audio_{number:04d}.wav", sampling_rate=AUDIO.sampling_rate)
        assert len(wave) == mel.size(1) * AUDIO.hop_length and wave.std() > 3e-4
        torch.testing.assert_close(wave, expected_wave(vocoder and checkpoints[vocoder], mel), rtol=0, atol=TWO_STEPS)
