"""The harmonic vocoder in `inference.py` and `load_voice`: copies of recordings, a given pitch, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from test_vocoder import voice_checkpoint
from tiny_harmonic import AUDIO, save_harmonic, speech_mel, voice_of
from torch import Tensor

import inference
from common.audio.mel import MelExtractor
from common.audio.wav import load_wav, save_wav
from common.checkpoints.loading import open_checkpoint
from common.config import AudioConfig
from common.precision import Precision
from common.synthesis.loading import load_vocoder, load_voice
from scripts.checkpoint_tools import inspect, strip

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


def test_a_recording_is_copied_with_more_corrections_nearer(speak: Callable[..., Tensor], tmp_path: Path):
    mel = MelExtractor(AUDIO)(load_wav(tmp_path / "a.wav", sampling_rate=22050)[None])
    errors = []
    for count in ("0", "2", "8"):
        copied = MelExtractor(AUDIO)(speak("--mel-corrections", count)[None])[:, :, :N_FRAMES]
        errors.append(float((copied - mel).abs().mean()))
    assert errors == sorted(errors, reverse=True) and errors[0] > 2 * errors[2]
    default = speak()
    assert torch.equal(default, speak("--mel-corrections", "2")) and not torch.equal(default, speak("--seed", "9"))


def test_the_denoiser_is_refused(speak: Callable[..., Tensor]):
    with pytest.raises(SystemExit):  # it has no noise of its own
        speak("--denoising-strength", "0.01")


def test_a_voice_speaks_through_it(tmp_path: Path):
    audio = AudioConfig(n_mels=8)
    path = save_harmonic(tmp_path / "harmonic.pt", audio)
    speech = load_voice(voice_checkpoint(tmp_path / "voice.pt", audio), path, device="cpu").speak("hello")
    assert speech.wave.isfinite().all() and len(speech.wave) == speech.mel.size(1) * audio.hop_length


def test_its_checkpoint_is_described_and_stripped(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    inspect([str(checkpoint)])
    assert "Harmonic" in capsys.readouterr().out
    strip([str(checkpoint), str(tmp_path / "small.pt"), "--dtype", "bfloat16"])
    small = open_checkpoint(tmp_path / "small.pt", role="vocoder", ema=True)
    wave = load_vocoder(small, precision=Precision()).speak(speech_mel(60), [60])[0]
    assert wave.shape == (60 * 256,) and wave.isfinite().all()
