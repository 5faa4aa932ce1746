"""The script that trains a voice and its vocoder as the shipped ones are trained."""

from dataclasses import replace
from pathlib import Path

from shell import ROOT, dry_run, run_bash, training_options
from tiny_harmonic import save_harmonic
from tiny_voice import SMALL, save_voice

from common.config import AudioConfig
from scripts.datasets.embedded_corpus import READER, make_corpus
from speech_toolkit import load_voice

SCRIPT = "scripts/train_voices.sh"


def test_all_stages_are_commands_that_train_py_takes(tmp_path: Path):
    checkpoint, vocoder = save_voice(tmp_path / "any.pt"), save_harmonic(tmp_path / "vocoder.pt")
    commands = dry_run(
        SCRIPT,
        NUM_GPUS="0",
        OUTPUT_DIR=tmp_path,
        DATASET_PATH=tmp_path,
        FROM_CHECKPOINT=checkpoint,
        FROM_VOCODER=vocoder,
    )
    first, second, third, fourth = (words for words in commands if "train.py" in words)
    voice, adversarial = f"{tmp_path}/voice/FastPitch_checkpoint_14.pt", "adversarial/FastPitch_checkpoint_25.pt"
    assert first[first.index("--from-checkpoint") + 1] == str(checkpoint)
    assert second[second.index("--from-checkpoint") + 1] == voice
    second[second.index("--from-checkpoint") + 1] = str(checkpoint)
    options = [training_options(words) for words in (first, second, third)]
    assert [one.learning_rate for one in options] == [1.6e-2, 4e-3, 4e-4]
    assert {"--adversarial", "--mpd-channels"} <= set(fourth)
    assert [one.batch_size for one in options] == [8, 8, 8] and all(one.resume for one in options)
    assert options[1].adversarial and not options[0].adversarial and options[2].fine_tuning
    assert options[2].from_checkpoint == vocoder and options[2].input_mels_dir == tmp_path / "mels"
    stripped = [words[-3:] for words in commands if "strip" in words]
    assert stripped[0] == ["bfloat16", str(tmp_path / adversarial), str(tmp_path / "voice.pt")]


def test_a_corpus_of_two_speakers_becomes_a_voice_that_speaks_and_finished_trainings_are_kept(tmp_path: Path):
    sentences = ["Good day.", "Good night.", "The boat left the harbor early.", "It rained.", "The end."]
    speakers = {name: replace(READER, pitch=pitch) for name, pitch in (("low", 20), ("high", 90))}
    make_corpus(tmp_path / "two", sentences, speakers, n_validation=1)
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
