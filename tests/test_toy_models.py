"""A model is a folder and a line in the registry: two toy models train, resume, speak and are measured as they are."""

from pathlib import Path

import pytest
import torch
from corpus import make_corpus

import inference
import train
from common import registry
from common.audio.wav import load_wav
from common.checkpoints.reading import load_checkpoint
from common.logger import read_log

FOLDER = Path(__file__).resolve().parent / "toy_models"
TOYS = {"Toy-Vocoder": "toy_vocoder", "ToyVoice": "toy_voice"}
SIZES = "--n-mel-channels 8 --hop-length 128 --win-length 512 --filter-length 512".split()


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line that a new model needs."""
    monkeypatch.syspath_prepend(FOLDER)
    for name, package in TOYS.items():
        monkeypatch.setitem(registry._PACKAGES, name, package)


def train_toy(model: str, folder: Path, output: Path, *words: str) -> None:
    lists = ["--training-files", str(folder / "train.txt"), "--validation-files", str(folder / "train.txt")]
    assert train.main(["-m", model, "-o", str(output), "-d", str(folder), *lists, *SIZES, *words]) == 0


@pytest.fixture
def checkpoints(registered: None, tmp_path: Path) -> dict[str, Path]:
    """A checkpoint of each toy model, trained by its own recipe."""
    corpus = make_corpus(tmp_path / "corpus", 4, seconds=0.3)
    for model in TOYS:
        train_toy(model, corpus, tmp_path / model)
    return {model: tmp_path / model / f"{model}_checkpoint_2.pt" for model in TOYS}


@pytest.mark.parametrize("model", TOYS)
def test_a_new_model_trains_and_resumes_bit_for_bit(model: str, checkpoints: dict[str, Path], tmp_path: Path):
    corpus, parts = tmp_path / "corpus", tmp_path / "parts"
    train_toy(model, corpus, parts, "--epochs-this-job", "1")
    train_toy(model, corpus, parts, "--resume")
    ours, theirs = (load_checkpoint(path) for path in (parts / checkpoints[model].name, checkpoints[model]))
    assert ours.training["iteration"] == theirs.training["iteration"] == 4  # two epochs of two updates
    for name, state in theirs.networks.items():
        assert all(torch.equal(ours.networks[name][key], value) for key, value in state.items())
    log = [record["data"] for record in read_log(parts / "nvlog.json") if record["type"] == "LOG"]
    assert sum("val_loss" in data for data in log) == 2


def speak(checkpoints: dict[str, Path], folder: Path, *words: str) -> dict[str, float]:
    """Speak two phrases into ``folder``; returns the figures of the log."""
    phrases = folder.parent / "phrases.txt"
    phrases.write_text("Go on.\nA longer one, by far.\n")
    models = [f"--toyvoice={checkpoints['ToyVoice']}", f"--toyvocoder={checkpoints['Toy-Vocoder']}"]
    assert inference.main(["-i", str(phrases), "-o", str(folder), "--fade-out", "0", *models, *words]) == 0
    records = [record["data"] for record in read_log(folder / "nvlog_infer.json") if record["type"] == "LOG"]
    return {key: value for data in records for key, value in data.items()}


def test_new_models_speak_with_their_own_options(checkpoints: dict[str, Path], tmp_path: Path):
    speak(checkpoints, tmp_path / "plain")
    speak(checkpoints, tmp_path / "changed", "--toy-pace", "3", "--toy-gain", "0.5")
    names = sorted(path.name for path in (tmp_path / "plain").glob("*.wav"))
    assert len(names) == 2
    for name, text in zip(names, ("Go on.", "A longer one, by far.")):
        plain, changed = (load_wav(tmp_path / out / name, sampling_rate=22050) for out in ("plain", "changed"))
        assert len(plain) == 3 * len(changed) == 3 * len(text) * 128
        assert 0 < changed.abs().max() < 0.8 * plain.abs().max()


def test_new_models_are_measured(checkpoints: dict[str, Path], tmp_path: Path):
    figures = speak(checkpoints, tmp_path / "out", "--repeats", "2", "--warmup-steps", "1", "-bs", "2")
    assert figures["avg_generator_frames/s"] > 0 and figures["avg_toyvocoder_samples/s"] > 0
    assert 0 < figures["avg_toyvocoder_latency"] < figures["avg_latency"]
    assert figures["avg_RTF@2"] == pytest.approx(2 * figures["avg_RTF"])
