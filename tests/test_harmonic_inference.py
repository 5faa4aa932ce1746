"""The harmonic vocoder in `inference.py` and `load_voice`: copies of recordings, a given pitch, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tiny_harmonic import save_harmonic, voice_of
from torch import Tensor

import inference
from common.audio.wav import load_wav, save_wav
from common.errors import InputError

N_FRAMES = 100


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return save_harmonic(tmp_path / "harmonic.pt")


@pytest.fixture
def speak(checkpoint: Path, tmp_path: Path) -> Callable[..., Tensor]:
    """Copies a recording, whose F0 glides, with the words of `inference.py` and pitch in its list."""
    wave = voice_of(torch.linspace(120, 240, (N_FRAMES - 1) * 256))
    save_wav(tmp_path / "a.wav", wave, sampling_rate=22050)

    def run(*words: str, pitch: Tensor | None = None) -> Tensor:
        rows = [["output", "wav"], ["b.wav", "a.wav"]]
        if pitch is not None:
            torch.save(pitch, tmp_path / "pitch.pt")
            rows = [[*rows[0], "pitch"], [*rows[1], "pitch.pt"]]
        (tmp_path / "list.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
        lists = ["-i", str(tmp_path / "list.tsv"), "--dataset-path", str(tmp_path), "--fade-out", "0"]
        assert inference.main([*lists, "--harmonic", str(checkpoint), "-o", str(tmp_path / "out"), *words]) == 0
        return load_wav(tmp_path / "out" / "b.wav", sampling_rate=22050)

    return run


def test_a_column_of_pitch_is_spoken_with(speak: Callable[..., Tensor], capsys: pytest.CaptureFixture[str]):
    pitch = torch.full((N_FRAMES,), 180.0)
    steady = speak(pitch=pitch)
    assert not torch.allclose(steady, speak(pitch=pitch * 1.5), atol=1e-2)
    assert "not read" not in capsys.readouterr().err


def test_pitch_that_does_not_fit_is_refused(speak: Callable[..., Tensor]):
    with pytest.raises(InputError, match=r"pitch.pt: shape \(99,\), expected \(100,\), one value a mel frame"):
        speak(pitch=torch.full((N_FRAMES - 1,), 180.0))
    for value in (20.0, 1300.0, -5.0):
        pitch = torch.zeros(N_FRAMES)
        pitch[4] = value
        with pytest.raises(InputError, match=rf"list.tsv:2\): pitch of {value:g} Hz, expected 0 or 30 to 1200"):
            speak(pitch=pitch)
