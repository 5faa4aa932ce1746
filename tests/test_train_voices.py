"""The script that trains a voice and its vocoder as the shipped ones are trained."""

from dataclasses import replace
from pathlib import Path

import pytest
from shell import ROOT, run_bash
from tiny import read_aloud
from tiny_harmonic import save_harmonic
from tiny_voice import SMALL, save_voice

from common.config import AudioConfig
from scripts.demos.quickstart import READER
from speech_toolkit import load_voice

SCRIPT = "scripts/train_voices.sh"


def test_each_training_starts_from_the_one_before(tmp_path: Path):
    done = run_bash(ROOT / SCRIPT, DRY_RUN="1", DATASET_PATH=tmp_path, OUTPUT_DIR="out", NUM_GPUS="0", SHARP_EPOCHS="9")
    commands = [line.split() for line in done.stdout.splitlines() if " train.py " in line]
    made = [f"{words[words.index('--output') + 1]}_{words[words.index('--epochs') + 1]}" for words in commands]
    assert made == ["out/voice_14", "out/adversarial_25", "out/vocoder_4", "out/sharp_9"]
    first = [words[words.index("--from-checkpoint") + 1] for words in commands]
    names = ("voices/en-small.pt", "voices/vocoder-small.pt")
    assert [first[0], first[2]] == [str(ROOT / name) for name in names]
    assert first[1::2] == ["out/voice/FastPitch_checkpoint_14.pt", "out/vocoder/Harmonic_checkpoint_4.pt"]
    assert [line.split()[-2:] for line in done.stdout.splitlines() if " strip " in line] == [
        ["out/adversarial/FastPitch_checkpoint_25.pt", "out/voice.pt"],
        ["out/sharp/Harmonic_checkpoint_9.pt", "out/vocoder.pt"],
    ]


@pytest.mark.slow
def test_a_corpus_of_two_speakers_becomes_a_voice_that_speaks_and_finished_trainings_are_kept(tmp_path: Path):
    sentences = ["Good day.", "Good night.", "The boat left the harbor early.", "It rained.", "The end."]
    speakers = {name: replace(READER, pitch=pitch) for name, pitch in (("low", 20), ("high", 90))}
    read_aloud(tmp_path / "two", sentences, speakers)
    (tmp_path / "two/speakers.txt").write_text("high\nlow\n")
    settings = {"OUTPUT_DIR": tmp_path / "out", "DATASET_PATH": tmp_path / "two", "N_VAL": "1", "NUM_GPUS": "0"}
    settings |= dict.fromkeys(("VOICE_EPOCHS", "ADVERSARIAL_EPOCHS", "VOCODER_EPOCHS", "SHARP_EPOCHS"), "1")
    settings["FROM_CHECKPOINT"] = save_voice(tmp_path / "any.pt", model=SMALL, audio=AudioConfig())
    settings["FROM_VOCODER"] = save_harmonic(tmp_path / "vocoder.pt")
    done = run_bash(ROOT / SCRIPT, OMP_NUM_THREADS="1", **settings)
    assert done.returncode == 0, done.stderr
    voice = load_voice(tmp_path / "out/voice.pt", vocoder=tmp_path / "out/vocoder.pt")
    assert {*voice.speakers} >= {"high", "low"}
    assert len(voice.speak("Good day.", speaker="low").wave) > 1000
    again = run_bash(ROOT / SCRIPT, **settings)
    assert again.returncode == 0 and again.stdout.count(" is there\n") == 4
