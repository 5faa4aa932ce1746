"""A model is a folder and a line in the registry: two new ones train, resume, and speak wherever voices do.

One goes from text to sound in one network, and the decoder of the other takes a number of steps.
"""

from pathlib import Path

import httpx
import pytest
import torch
from corpus import make_corpus
from limits import HANG_LIMIT
from tiny_served import serving

import extract_mels
import inference
import train
from common import registry
from common.audio.wav import load_wav
from common.checkpoints.reading import load_checkpoint
from common.errors import OptionError
from common.logger import read_log
from common.serving.app import Service
from common.serving.arguments import load_models
from common.serving.options import Limits
from common.synthesis.loading import load_voice

FOLDER = Path(__file__).resolve().parent / "toy_models"
TOYS = {"Toy-Flow": "toy_flow", "Toy-VITS": "toy_vits"}
SIZES = "--n-mel-channels 8 --hop-length 128 --win-length 512 --filter-length 512".split()
every_model = pytest.mark.parametrize("model", TOYS)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line that a new model needs."""
    monkeypatch.syspath_prepend(FOLDER)
    for name, package in TOYS.items():
        monkeypatch.setitem(registry._PACKAGES, name, package)


def train_toy(model: str, folder: Path, output: Path, *words: str) -> Path:
    """Train for two updates, or those that are left of them; returns the last checkpoint."""
    lists = ["--training-files", str(folder / "train.txt"), "--validation-files", str(folder / "train.txt")]
    assert train.main(["-m", model, "-o", str(output), "-d", str(folder), *lists, *SIZES, *words]) == 0
    return output / f"{model}_checkpoint_1.pt"


@pytest.fixture
def checkpoint(registered: None, model: str, tmp_path: Path) -> Path:
    """A checkpoint of two updates by the model's own recipe."""
    return train_toy(model, make_corpus(tmp_path / "corpus", 4, seconds=0.5), tmp_path / "out")


@every_model
def test_a_new_model_trains_and_resumes_bit_for_bit(model: str, checkpoint: Path, tmp_path: Path):
    words = ("--batch-size", "1", "--gradient-accumulation-steps", "2", "--epochs", "2")
    corpus, whole, parts = tmp_path / "corpus", tmp_path / "whole", tmp_path / "parts"
    train_toy(model, corpus, whole, *words)
    train_toy(model, corpus, parts, *words, "--epochs-this-job", "1")
    train_toy(model, corpus, parts, *words, "--resume")
    ours, theirs = (load_checkpoint(folder / f"{model}_checkpoint_2.pt") for folder in (parts, whole))
    assert ours.training["iteration"] == theirs.training["iteration"] == 4
    for name, state in theirs.networks.items():
        assert all(torch.equal(ours.networks[name][key], value) for key, value in state.items())
    log = [record["data"] for record in read_log(parts / "nvlog.json") if record["type"] == "LOG"]
    assert sum("val_loss" in data for data in log) == 2


@every_model
def test_a_voice_and_a_server_of_a_new_model_say_the_same(model: str, checkpoint: Path, tmp_path: Path):
    voice, text = load_voice(checkpoint), "Go on. ... A longer one, by far!"
    wave = voice.speak(text).wave
    torch.testing.assert_close(torch.cat(list(voice.stream(text))), wave, atol=1e-5, rtol=0)
    assert voice.speak("...").wave.abs().max() < 1e-3  # of which nothing is said
    option = f"--{registry.get_model(model).option}"
    service = Service(load_models([option, str(checkpoint)]), limits=Limits(deadline=HANG_LIMIT))
    service.warm_up()
    with serving(service) as address:
        given = {"input": text, "response_format": "wav", "voice": checkpoint.stem}
        answer = httpx.post(f"{address}/v1/audio/speech", json=given, timeout=HANG_LIMIT)
    (tmp_path / "served.wav").write_bytes(answer.content)
    served = load_wav(tmp_path / "served.wav", sampling_rate=voice.sampling_rate)
    torch.testing.assert_close(served, wave, atol=1e-4, rtol=0)


@pytest.mark.parametrize("model", ["Toy-VITS"])
def test_what_a_model_does_not_offer_is_refused(checkpoint: Path, tmp_path: Path):
    with pytest.raises(OptionError, match="Toy-VITS needs no vocoder"):
        load_voice(checkpoint, vocoder="voices/vocoder-small.pt")
    words = ["--checkpoint", str(checkpoint), "-o", str(tmp_path / "mels"), "-d", str(tmp_path / "corpus")]
    with pytest.raises(OptionError, match="Toy-VITS has no teacher forcing"):
        extract_mels.main([*words, "--filelist", str(tmp_path / "corpus" / "train.txt")])
    with pytest.raises(SystemExit, match="2"):
        inference.main(["--toyvits", str(checkpoint), "--text", "Go on.", "--griffin-lim-iters", "2"])
