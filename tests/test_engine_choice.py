"""The engine that computes a voice on a CPU: PyTorch or onnxruntime, the same sound with either."""

import re
from pathlib import Path

import pytest
import torch
from tiny_served import make_checkpoints, served_models

from common.errors import OptionError
from common.serving.models import ServedModels
from common.synthesis.networks import ExportedVocoder
from fastpitch.export import ExportedNetwork
from fastpitch.model import FastPitch
from scripts import checkpoint_tools

TEXT = "one word and then many more of them, until pieces are needed for all of it. " * 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A voice and a vocoder as checkpoints."""
    made = tmp_path_factory.mktemp("engine")
    make_checkpoints(made)
    return made


@pytest.fixture(scope="module")
def both(folder: Path) -> list[ServedModels]:
    """What is served in PyTorch and in onnxruntime."""
    return [served_models(folder, "--engine", name) for name in ("pytorch", "onnx")]


def engines_of(models: ServedModels) -> tuple[bool, bool]:
    """Whether text-to-mel and vocoder run in onnxruntime."""
    assert isinstance(models.voice.synthesizer.network, FastPitch | ExportedNetwork)
    return isinstance(models.voice.synthesizer.network, ExportedNetwork), isinstance(
        models.voice.synthesizer.vocoder.network, ExportedVocoder
    )


def test_a_server_speaks_the_same_with_either_engine(both: list[ServedModels]):
    assert [engines_of(one) for one in both] == [(False, False), (True, True)]
    ssml = 'one <prosody rate="slow" pitch="+20%" volume="-6dB">word <break time="200ms"/> after</prosody> <mark/>'
    ways = [
        lambda voice: voice.speak("two words", pace=1.3, pitch=1.2, volume=0.5, speaker="bob").wave,
        lambda voice: voice.speak(ssml.replace("<mark/>", "the other")).wave,
        lambda voice: torch.cat(list(voice.stream(TEXT, pitch=0.9, speaker="bob"))),
    ]
    for speak in ways:
        expected, made = (speak(one.voice) for one in both)
        assert expected.abs().max() > 1e-3
        torch.testing.assert_close(made, expected, atol=1e-5, rtol=0)
    expected, made = (one.voice_of_request(seed=5, vocoder_pitch=None).speak("a b c").wave for one in both)
    torch.testing.assert_close(made, expected, atol=1e-5, rtol=0)


def test_no_file_stays_behind(both: list[ServedModels], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    models = served_models(folder, "--engine", "onnx")
    assert list(tmp_path.iterdir()) == []
    torch.testing.assert_close(models.voice.speak("a").wave, both[0].voice.speak("a").wave, atol=1e-5, rtol=0)


def test_8_bits_sound_nearly_the_same_and_say_how_far(
    folder: Path, both: list[ServedModels], capsys: pytest.CaptureFixture
):
    models = served_models(folder, "--engine", "int8")
    assert engines_of(models) == (True, True)
    said = re.findall(r"^(\S+) in 8 bits: .* ([0-9.]+)$", capsys.readouterr().out, re.MULTILINE)
    assert [name for name, _ in said] == ["FastPitch", "HiFi-GAN"] and all(0 < float(one) < 0.2 for _, one in said)
    expected, made = (one.voice.speak("some words").wave for one in (both[0], models))
    assert made.shape == expected.shape and 0 < (made - expected).abs().max() < expected.abs().max()


@pytest.mark.parametrize("engine", ["onnx", "int8"])
def test_exported_files_run_as_they_are(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture, engine: str):
    for name in ("voice", "vocoder"):
        checkpoint_tools.export([str(folder / f"{name}.pt"), "-o", str(tmp_path / f"{name}.pt")])
    capsys.readouterr()
    assert engines_of(served_models(tmp_path, "--engine", engine)) == (True, True)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("engine", ["onnx", "int8"])
def test_onnxruntime_computes_in_float32(folder: Path, engine: str):
    with pytest.raises(OptionError, match=f"--engine {engine} .*--amp"):
        served_models(folder, "--engine", engine, "--amp", "--amp-dtype", "bfloat16")
