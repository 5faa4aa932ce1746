"""From real recordings to a voice that speaks, by the commands a user gives: on LJSpeech clips, evenly aligned."""

from pathlib import Path

import pytest
import soundfile
import torch
from shell import ROOT
from tiny import TINY_OPTIONS
from tiny_models import KilledError, at_iteration, logged, without_samples
from training_setup import set_up

import extract_mels
import inference
import train
from common.audio.wav import load_wav
from common.checkpoints.reading import load_checkpoint
from common.text.cleaners import get_cleaner
from models import available_models, get_model


def prepare(source: Path, folder: Path, *, count: int) -> None:
    """LJSpeech's layout, with TextGrids that give each character of a transcript the same time."""
    clean = get_cleaner("english_cleaners_v3")
    (folder / "TextGrid").mkdir(parents=True)
    (folder / "wavs").symlink_to(source / "wavs")
    lines = []
    for row in (source / "metadata.csv").read_text(encoding="utf-8").splitlines()[:count]:
        name, _, text = row.split("|")
        text = clean(text)
        info = soundfile.info(source / "wavs" / f"{name}.wav")
        seconds = info.frames / info.samplerate
        bounds = [seconds * index / len(text) for index in range(len(text) + 1)]
        tier = "".join(f'{a!r}\n{b!r}\n"{letter}"\n' for a, b, letter in zip(bounds, bounds[1:], text))
        head = f'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n{seconds!r}\n<exists>\n1\n'
        tier = f'"IntervalTier"\n"phones"\n0\n{seconds!r}\n{len(text)}\n{tier}'
        (folder / "TextGrid" / f"{name}.TextGrid").write_text(head + tier, encoding="utf-8")
        lines.append(f"wavs/{name}.wav|{text}\n")
    (folder / "train_wav.txt").write_text("".join(lines[:-2]), encoding="utf-8")
    (folder / "val_wav.txt").write_text("".join(lines[-2:]), encoding="utf-8")


def extract(folder: Path) -> None:
    lists = [folder / "train_wav.txt", folder / "val_wav.txt"]
    metas = [folder / "train.txt", folder / "val.txt"]
    what = ("--extract-mels", "--extract-durs-from-textgrids", "--extract-pitch-char", "--input-type", "char")
    words = ("-d", folder, "--wav-text-filelist", *lists, "--output-meta-file", *metas, *what, "--num-workers", 1)
    assert extract_mels.main([str(word) for word in words]) == 0


def run_training(folder: Path, output: Path, *extra: object) -> None:
    lists = ("--training-files", folder / "train.txt", "--validation-files", folder / "val.txt")
    words = ("-o", output, "-d", folder, *lists, *TINY_OPTIONS, "--validation-interval", 100, *extra)
    assert train.main([str(word) for word in words]) == 0


@pytest.mark.parametrize(("count", "epochs", "batch"), [(8, 30, 3), pytest.param(80, 60, 16, marks=pytest.mark.slow)])
def test_real_clips_become_a_voice_that_overfits_resumes_exactly_and_speaks(
    count: int, epochs: int, batch: int, shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    prepare(shared_data / "LJSpeech-sample", tmp_path / "lj", count=count)
    extract(tmp_path / "lj")
    assert len((tmp_path / "lj" / "train.txt").read_text().splitlines()) == count - 2

    options = ("--epochs", epochs, "-bs", batch, "--warmup-steps", 40, "--steps-per-checkpoint", 7)
    options += ("--optimizer", "adam", "-lr", 0.05)
    whole = tmp_path / "whole"
    with without_samples():
        run_training(tmp_path / "lj", whole, *options)
    losses = dict(enumerate(logged(whole, "avg_train_mel_loss"), 1))
    assert losses[epochs] < 0.15 * losses[1]

    def die() -> None:
        raise KilledError

    killed = tmp_path / "killed"
    n_steps = (count - 2) // batch
    with without_samples():
        with at_iteration(epochs // 2 * n_steps, die), pytest.raises(KilledError):
            run_training(tmp_path / "lj", killed, *options)
        run_training(tmp_path / "lj", killed, *options, "--resume")
    name = f"FastPitch_checkpoint_{epochs}.pt"
    first, second = (load_checkpoint(output / name).networks["fastpitch"] for output in (whole, killed))
    assert all(torch.equal(value, second[key]) for key, value in first.items())

    phrases = tmp_path / "phrases.tsv"
    phrases.write_text("one.wav|printing, in the only sense\ntwo.wav|The year 1455 was no. 7.\n")
    words = ("-i", phrases, "-o", tmp_path / "spoken", "--fastpitch", whole / name, "--save-mels")
    assert inference.main([str(word) for word in words]) == 0
    assert "Griffin-Lim" in capsys.readouterr().out
    for output in ("one", "two"):
        wave = load_wav(tmp_path / "spoken" / f"{output}.wav", sampling_rate=22050)
        mel = torch.load(tmp_path / "spoken" / "mels" / f"{output}.pt", weights_only=True)
        assert len(wave) == mel.shape[1] * 256
        assert 0.01 < float(wave.abs().max()) <= 1.0  # it is heard, and does not clip


@pytest.mark.parametrize("model", available_models())
def test_every_model_trains_on_the_lines_of_ljspeechs_own_metadata(model: str, shared_data: Path, tmp_path: Path):
    clips = shared_data / "LJSpeech-sample"
    lines = (clips / "metadata.csv").read_text(encoding="utf-8").splitlines()[:3]
    (tmp_path / "metadata.csv").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "wavs").symlink_to(clips / "wavs")
    lists = [
        word for kind in ("training", "validation") for word in (f"--{kind}-files", str(tmp_path / "metadata.csv"))
    ]
    config = str(ROOT / "jasper/configs/jasper10x5dr_speca.yaml")
    own = {"FastPitch": ["--learned-alignment"], "Jasper": ["--model-config", config]}.get(model, [])
    setup = set_up("-m", model, "-d", str(tmp_path), "-o", str(tmp_path / "out"), *lists, *own)
    dataset = get_model(model).data_function.build_dataset(
        setup.options, [tmp_path / "metadata.csv"], audio=setup.audio, text=setup.text, training=False
    )
    assert len(dataset) == 3 and all(length > 0 for length in dataset.lengths)
