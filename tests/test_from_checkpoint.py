"""New trainings from the weights of other files: published ones of every layout, safetensors, and what is refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import foreign
import pytest
import tiny_jasper
import tiny_vocoder
import torch
import yaml
from tiny_models import without_samples
from tiny_voice import AUDIO, save_vocoder, symbols_of
from torch import Tensor

import train
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint, strip_checkpoint
from common.checkpoints.reading import load_checkpoint
from common.config import to_plain
from common.errors import CheckpointError, OptionError
from scripts import checkpoint_tools

# Of train.py besides what the checkpoint says: one update that changes next to nothing.
SMALL_DISCRIMINATORS = tiny_vocoder.TINY_OPTIONS[10:-2]  # whatever the generator
ONE_UPDATE = "-bs 2 --epochs 1 -lr 1e-12 --weight-decay 0 --gradient-accumulation-steps 1 --samples-interval 99".split()
OPTIONS = {
    "FastPitch": "--learned-alignment",
    "HiFi-GAN": "--segment-size 2048",
    "WaveGlow": "--segment-length 1200",
    "Tacotron2": "",
    "Jasper": "--min-lr 0",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings with transcripts: two to train on, and one to validate on."""
    folder = tiny_vocoder.make_recordings(tmp_path_factory.mktemp("corpus") / "speech", count=3, val=1)
    for name in ("train", "val"):
        names = (folder / f"{name}.txt").read_text().split()
        (folder / f"{name}_text.txt").write_text("".join(f"{one}|bread and salt\n" for one in names))
    return folder


def begin(corpus: Path, output: Path, model: str, *words: Any) -> Checkpoint:
    """The checkpoint after one update."""
    lists = "{}.txt" if model in ("HiFi-GAN", "WaveGlow") else "{}_text.txt"
    files = [str(corpus / lists.format(name)) for name in ("train", "val")]
    data = ["-d", str(corpus), "--training-files", files[0], "--validation-files", files[1]]
    options = [*ONE_UPDATE, *OPTIONS[model].split(), *map(str, words)]
    with without_samples():
        assert train.main(["-m", model, "-o", str(output), *data, *options]) == 0
    return load_checkpoint(output / f"{model}_checkpoint_1.pt")


def assert_begun_with(made: Checkpoint, weights: dict[str, dict[str, Tensor]]) -> None:
    """A new training of one update has these weights, but for statistics of batches."""
    assert (made.training["epoch"], made.training["iteration"]) == (1, 1)
    for name, state in weights.items():
        for key, value in state.items():
            if not key.endswith(("running_mean", "running_var", "num_batches_tracked", "weight_u", "weight_v")):
                torch.testing.assert_close(made.networks[name][key], value, atol=1e-6, rtol=0, msg=f"{name}.{key}")


def save_jasper(folder: Path) -> tuple[Path, str]:
    """Weights alone of Jasper, and the option of the file that describes it."""
    torch.save(foreign.jasper(), folder / "jasper.pt")
    blocks = to_plain(tiny_jasper.SMALL)["blocks"]
    rate = {"sample_rate": 16000}
    data = {"audio_dataset": rate, "filterbank_features": {**rate, "n_filt": 16}}
    encoder = {"in_feats": 16, "activation": "relu", "use_conv_masks": True, "blocks": blocks}
    network = {"encoder": encoder, "decoder": {"in_feats": 12}}
    labels = list(load_checkpoint(folder / "jasper.pt").config.labels)
    config = {"name": "Jasper", "labels": labels, "input_train": data, "input_val": data, "jasper": network}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    return folder / "jasper.pt", f"--model-config={folder / 'config.yaml'}"


def save_foreign(folder: Path, name: str) -> tuple[Path, str, list[str]]:
    """A published file of that name: its path, its model, and the options that it needs."""
    if name == "Jasper":
        path, option = save_jasper(folder)
        return path, "Jasper", [option]
    if name == "the authors' HiFi-GAN":
        return foreign.save_authors_hifigan(folder), "HiFi-GAN", []
    make, model = {"Tacotron 2": (foreign.tacotron2, "Tacotron2"), "WaveGlow": (foreign.waveglow, "WaveGlow")}[name]
    torch.save(make(), folder / "source.bin")
    return folder / "source.bin", model, []


@pytest.mark.parametrize("name", ["Tacotron 2", "WaveGlow", "the authors' HiFi-GAN", "Jasper"])
def test_a_published_file_begins_a_training_of_its_model(
    name: str, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    path, model, options = save_foreign(tmp_path, name)
    made = begin(corpus, tmp_path / "out", model, *options, "--from-checkpoint", path)
    assert f"starting a new training from the weights of {path}\n" in capsys.readouterr().out
    source = load_checkpoint(path)
    assert_begun_with(made, source.networks)
    assert made.audio.n_mels == source.audio.n_mels


@pytest.mark.parametrize("name", ["Tacotron 2", "Jasper"])
def test_a_training_of_another_alphabet_keeps_what_is_known(
    name: str, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    path, model, options = save_foreign(tmp_path, name)
    source, key = load_checkpoint(path), "embedding.weight" if model == "Tacotron2" else "decoder.layers.0.weight"
    if model == "Jasper":
        config = yaml.safe_load((tmp_path / "config.yaml").read_text())
        config["labels"] = ["ä", *config["labels"]]
        (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
        places = [*range(1, len(config["labels"]) + 1)]
    else:
        options = ["--symbol-set", "english_expanded", "--text-cleaners", "basic_cleaners"]
        old, new = symbols_of(source.text), symbols_of(replace(source.text, symbol_set="english_expanded"))
        places = [len(new) - 1 - new[::-1].index(one) for one in old]
    made = begin(corpus, tmp_path / "out", model, *options, "--from-checkpoint", path)
    assert "from the mean of the others: [" in capsys.readouterr().out
    table, known = (one.networks[source.model.lower()][key] for one in (made, source))
    torch.testing.assert_close(table[places], known, atol=1e-6, rtol=0)


@pytest.fixture(scope="module")
def vocoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vocoder whose safetensors file and stripped checkpoint are beside it."""
    path = save_vocoder(tmp_path_factory.mktemp("vocoder") / "vocoder.pt")
    checkpoint_tools.export([str(path), "--format", "safetensors"])
    save_checkpoint(path.with_name("stripped.pt"), strip_checkpoint(load_checkpoint(path)))
    return path


def test_a_training_begins_with_the_ema_weights(
    vocoder: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    held, path = load_checkpoint(vocoder), tmp_path / "ema.pt"
    ema = {"generator": {key: value + 0.01 for key, value in held.networks["generator"].items()}}
    save_checkpoint(path, replace(held, ema=ema))
    made = begin(corpus, tmp_path / "out", "HiFi-GAN", *SMALL_DISCRIMINATORS, "--from-checkpoint", path)
    assert f"starting a new training from the EMA weights of {path}\n" in capsys.readouterr().out
    assert_begun_with(made, ema)


@pytest.mark.parametrize(
    "option, name",
    [
        ("--from-checkpoint", "vocoder.safetensors"),
        ("--checkpoint-path", "vocoder.safetensors"),
        ("--from-checkpoint", "stripped.pt"),
    ],
)
def test_a_vocoder_of_weights_alone_begins_a_training(
    vocoder: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture, option: str, name: str
):
    path = vocoder.with_name(name)
    made = begin(corpus, tmp_path / "out", "HiFi-GAN", *SMALL_DISCRIMINATORS, option, path)
    printed = capsys.readouterr().out
    assert f"starting a new training from the weights of {path}\n" in printed
    assert f"{path} contains only the generator: mpd and msd start with new weights\n" in printed
    assert_begun_with(made, load_checkpoint(vocoder).networks)
    assert made.audio == AUDIO and made.stripped is None


@pytest.mark.parametrize("option", ["--from-checkpoint", "--checkpoint-path"])
def test_what_no_training_can_begin_with_is_one_line(option: str, corpus: Path, vocoder: Path, tmp_path: Path):
    (tmp_path / "a.onnx").write_bytes(b"\x08\x08\x12\x07pytorch")
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), tmp_path / "a.ts")
    for path, message in (
        (tmp_path / "a.onnx", "ONNX files are for inference only; give the checkpoint that it was exported from"),
        (tmp_path / "a.ts", "cannot be read .*; give the checkpoint that the TorchScript file was made from"),
        (vocoder, "a checkpoint of HiFi-GAN, expected one of WaveGlow$"),
    ):
        with pytest.raises(CheckpointError, match=rf"{path.name}: {message}"):
            begin(corpus, tmp_path / "out", "WaveGlow", option, path)
    with pytest.raises(OptionError, match="--checkpoint-path and --from-checkpoint both select initial weights"):
        begin(corpus, tmp_path, "HiFi-GAN", "--from-checkpoint", vocoder, "--checkpoint-path", vocoder)
    assert not (tmp_path / "out").exists()
