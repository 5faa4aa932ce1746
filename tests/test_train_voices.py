"""The script that trains the shipped voice and vocoder, and its data."""

import sys
from pathlib import Path

import numpy as np
import parselmouth
import pytest
from shell import ROOT, dry_run, run_bash, training_options
from tiny_voice import save_voice

from scripts.datasets import embedded_corpus, voice_data

SCRIPT = "scripts/train_voices.sh"


def by_model(commands: list[list[str]]) -> dict[str, list[list[str]]]:
    models = ("Harmonic", "FastPitch")
    return {name: [one for one in commands if f"train.py --model {name}" in " ".join(one)] for name in models}


def test_all_stages_are_commands_that_train_py_takes(tmp_path: Path):
    commands = dry_run(SCRIPT, NUM_GPUS="0", OUTPUT_DIR=tmp_path, DATASET_PATH=tmp_path)
    trainings = by_model(commands)
    (vocoder,) = map(training_options, trainings["Harmonic"])
    assert vocoder.epochs == 100 and vocoder.resume and vocoder.dataset_path == tmp_path / "data"
    base = training_options(trainings["FastPitch"][0])
    assert base.learned_alignment and base.g2p == "espeak" and base.n_speakers == len(voice_data.READERS) + 1
    voice = trainings["FastPitch"][1]
    checkpoint = save_voice(tmp_path / "any.pt")
    assert voice[voice.index("--from-checkpoint") + 1] == str(base.output / "FastPitch_checkpoint_12.pt")
    voice[voice.index("--from-checkpoint") + 1] = str(checkpoint)
    assert training_options(voice).training_files == [tmp_path / "data/lj_train.txt"]
    stripped = [words for words in commands if "strip" in words]
    shipped = [("float16", "voices/vocoder-small.pt"), ("bfloat16", "voices/en-small.pt")]
    assert [(words[-3], words[-1]) for words in stripped] == shipped


def test_finished_stages_are_skipped(tmp_path: Path):
    done = ["data/vocoder_train.txt", "vocoder/Harmonic_checkpoint_100.pt"]
    done += ["base/FastPitch_checkpoint_12.pt", "lj/FastPitch_checkpoint_200.pt"]
    for name in done:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    stub = tmp_path / "python"  # runs the script, and names what the script runs
    stub.write_text(f'#!/bin/sh\n[ "$2" = speech_toolkit ] && exec {sys.executable} "$@"\necho "$@"\n')
    stub.chmod(0o755)
    settings = {"OUTPUT_DIR": tmp_path, "DATASET_PATH": tmp_path, "VOICES": tmp_path / "v"}
    again = run_bash(ROOT / SCRIPT, PYTHON=stub, NUM_GPUS="0", **settings)
    assert again.returncode == 0, again.stderr
    assert again.stdout.count(" is there\n") == len(done) and "train.py" not in again.stdout
    assert again.stdout.count("checkpoint_tools strip") == 2


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As recordings four clips of embedded speech, and sentences."""
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "sentences.txt").write_text("Good day.\nGood night.\nThe boat left the harbor early.\nIt rained.\n")
    words = ["--sentences", str(folder / "sentences.txt"), "--n-validation", "1"]
    embedded_corpus.main(["-o", str(folder / "lj"), *words])
    return folder


def test_the_data_leave_out_what_is_held_back_and_are_made_once(
    corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("SENTENCES", "MORE_SENTENCES"):
        monkeypatch.setattr(voice_data, name, corpora / "sentences.txt")
    monkeypatch.setattr(voice_data, "VALIDATION", ("EM-0001",))
    words = ["-o", str(tmp_path), "--recordings", str(corpora / "lj"), "--held-back"]
    voice_data.main([*words, "EM-0002"])
    lists = {path.stem: path.read_text().splitlines() for path in tmp_path.glob("*.txt")}
    rows = {"EM-0003": "the boat left the harbor early.", "EM-0004": "it rained."}
    assert lists["lj_train"] == [f"wavs/lj/{name}.wav|{text}|lj" for name, text in rows.items()]
    assert lists["lj_val"] == ["wavs/lj/EM-0001.wav|good day.|lj"]
    assert lists["held_back"] == ["wavs/lj/EM-0002.wav|good night."]
    assert not any("EM-0002" in line or "EM-0001" in line for line in lists["vocoder_train"] + lists["base_train"])
    assert {line.rpartition("|")[2] for line in lists["base_train"]} == {*voice_data.READERS, "lj"}
    wavs = [tmp_path / line.partition("|")[0] for rows in lists.values() for line in rows]
    times = {path: path.stat().st_mtime_ns for path in wavs}
    voice_data.main([*words, "EM-0002"])
    assert {path: path.stat().st_mtime_ns for path in wavs} == times


def test_a_changed_voice_has_the_pitch_asked_for():
    time = np.arange(22050) / 22050
    wave = sum(0.1 * np.sin(2 * np.pi * 120 * k * time) for k in range(1, 8))
    raised = voice_data.change_voice(wave, sampling_rate=22050, formants=1.1, semitones=5)
    low = voice_data.change_voice(wave, sampling_rate=22050, formants=1.0, pitch=90.0)
    for made, expected in ((raised, 120 * 2 ** (5 / 12)), (low, 90.0)):
        pitch = parselmouth.Sound(made, 22050).to_pitch_ac().selected_array["frequency"]
        assert np.median(pitch[pitch > 0]) == pytest.approx(expected, rel=0.02)
        assert len(made) == len(wave) and np.abs(made).max() <= 0.96
