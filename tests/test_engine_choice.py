"""The engine that computes a voice on a CPU: PyTorch or onnxruntime, the same sound with either."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from tiny_served import make_checkpoints, served_models

from common.checkpoints import ExportedVocoder
from common.errors import OptionError
from common.serving.models import ServedModels
from common.synthesis import loading
from fastpitch.export import ExportedFastPitch
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
    assert isinstance(models.voice.network, FastPitch | ExportedFastPitch)
    return isinstance(models.voice.network, ExportedFastPitch), isinstance(
        models.voice.vocoder.network, ExportedVocoder
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
    expected, made = (one.of_request(seed=5, vocoder_pitch=None).voice.speak("a b c").wave for one in both)
    torch.testing.assert_close(made, expected, atol=1e-5, rtol=0)


def test_no_file_stays_behind(both: list[ServedModels], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    models = served_models(folder, "--engine", "onnx")
    assert list(tmp_path.iterdir()) == []
    torch.testing.assert_close(models.voice.speak("a").wave, both[0].voice.speak("a").wave, atol=1e-5, rtol=0)


ENGINES = ("PyTorch", "ONNX", "int8")


@pytest.mark.parametrize(
    "seconds, bound, chosen",
    [
        ([[0.1, 0.2, 0.3], [0.5, 0.4, 0.3]], 1.0, ("PyTorch", "int8")),
        ([[0.3, 0.2, 0.1], [0.5, 0.4, 0.3]], 0.0, ("ONNX", "ONNX")),  # 8 bits are never quite the same
    ],
)
def test_auto_takes_the_fastest_engine_for_each_network_that_speaks_close_to_it(
    folder: Path,
    both: list[ServedModels],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
    seconds: list[list[float]],
    bound: float,
    chosen: tuple[str, str],
):
    rest = iter(seconds)

    def measure(ways: Sequence) -> list[float]:
        for way in ways:
            way()
        return next(rest)

    monkeypatch.setattr(loading, "measure", measure)
    monkeypatch.setattr(loading, "LARGEST_DISTANCE", bound)
    models = served_models(folder, "--engine", "auto")
    assert engines_of(models) == tuple(name != "PyTorch" for name in chosen)
    (line,) = capsys.readouterr().out.splitlines()
    said = re.fullmatch(r"engine: FastPitch in (\w+) \((.*)\); HiFi-GAN in (\w+) \((.*)\)", line)
    assert (said[1], said[3]) == chosen
    for times, row in zip((said[2], said[4]), seconds):
        assert re.findall(r"(\w+) ([0-9.]+) s", times) == [(name, f"{one:.3f}") for name, one in zip(ENGINES, row)]
        assert re.search(r"int8 [0-9.]+ s at mel distance 0\.\d+$", times)
    expected = both[0].voice.speak("some words").wave
    if "int8" not in chosen:
        torch.testing.assert_close(models.voice.speak("some words").wave, expected, atol=1e-5, rtol=0)
    else:
        made = models.voice.speak("some words").wave
        assert made.shape == expected.shape and 0 < (made - expected).abs().max() < expected.abs().max()


def test_auto_runs_exported_files_as_they_are(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture):
    for name in ("voice", "vocoder"):
        checkpoint_tools.export([str(folder / f"{name}.pt"), "-o", str(tmp_path / f"{name}.pt")])
    capsys.readouterr()
    assert engines_of(served_models(tmp_path, "--engine", "auto")) == (True, True)
    assert capsys.readouterr().out == "engine: FastPitch in the file's engine; HiFi-GAN in the file's engine\n"
    assert engines_of(served_models(tmp_path, "--engine", "onnx")) == (True, True)


def test_auto_is_pytorch_with_amp(folder: Path, capsys: pytest.CaptureFixture):
    models = served_models(folder, "--engine", "auto", "--amp", "--amp-dtype", "bfloat16")
    assert engines_of(models) == (False, False) and "engine: PyTorch, as always with" in capsys.readouterr().out


def test_onnx_computes_in_no_other_numbers(folder: Path):
    with pytest.raises(OptionError, match="--engine onnx computes on the CPU in float32; leave out --cuda and --amp"):
        served_models(folder, "--engine", "onnx", "--amp", "--amp-dtype", "bfloat16")
