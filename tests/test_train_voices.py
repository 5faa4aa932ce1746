"""The script that trains the shipped voice and vocoder, and its lists."""

from pathlib import Path

import pytest
from shell import ROOT, dry_run, run_bash, training_options
from tiny_voice import save_voice

from common.errors import InputError
from scripts.datasets import make_corpus, voice_lists

SCRIPT = "scripts/train_voices.sh"


def by_model(commands: list[list[str]]) -> dict[str, list[list[str]]]:
    trainings = [words for words in commands if "train.py" in words]
    return {
        name: [one for one in trainings if f"--model {name}" in " ".join(one)] for name in ("HiFi-GAN", "FastPitch")
    }


def test_all_stages_are_commands_that_train_py_takes(tmp_path: Path):
    commands = dry_run(SCRIPT, NUM_GPUS="0", OUTPUT_DIR=tmp_path, DATASET_PATH=tmp_path)
    trainings = by_model(commands)
    mel, both = map(training_options, trainings["HiFi-GAN"])
    assert (mel.mel_loss_only, both.mel_loss_only) == (True, False)
    assert (mel.epochs, both.epochs, mel.output) == (10, 80, both.output)
    assert both.msd_groups == [1] * 7 and both.amp and both.resume
    base = training_options(trainings["FastPitch"][0])
    assert base.learned_alignment and base.g2p == "espeak"
    voice = trainings["FastPitch"][1]
    checkpoint = save_voice(tmp_path / "any.pt")
    assert voice[voice.index("--from-checkpoint") + 1] == str(base.output / "FastPitch_checkpoint_8.pt")
    voice[voice.index("--from-checkpoint") + 1] = str(checkpoint)
    assert training_options(voice).training_files == [tmp_path / "data/lj_train.txt"]
    stripped = [words for words in commands if "scripts.strip_checkpoint" in words]
    assert [words[-1] for words in stripped] == ["voices/vocoder-small.pt", "voices/lj-small.pt"]
    assert all("bfloat16" in words for words in stripped)


def test_one_stage_alone_and_the_published_discriminators_on_a_gpu(tmp_path: Path):
    commands = dry_run(SCRIPT, NUM_GPUS="1", STAGES="vocoder", OUTPUT_DIR=tmp_path, DATASET_PATH=tmp_path)
    trainings = by_model(commands)
    assert len(trainings["HiFi-GAN"]) == 2 and trainings["FastPitch"] == []
    assert "--cuda" in trainings["HiFi-GAN"][0] and "--msd-groups" not in trainings["HiFi-GAN"][0]
    wrong = run_bash(ROOT / SCRIPT, STAGES="vocoders", DRY_RUN="1", PYTHON="py")
    assert wrong.returncode == 2 and "expected of data, vocoder and voice" in wrong.stderr
    absent = run_bash(ROOT / SCRIPT, DATASET_PATH="/nonexistent", PYTHON="true", NUM_GPUS="0", OUTPUT_DIR=tmp_path)
    assert absent.returncode == 1 and "/nonexistent: no such folder" in absent.stderr


def test_finished_stages_are_skipped(tmp_path: Path):
    done = ["embedded/metadata.csv", "embedded_gb/metadata.csv", "data/vocoder_train.txt"]
    done += ["vocoder/HiFi-GAN_checkpoint_10.pt", "vocoder/HiFi-GAN_checkpoint_80.pt"]
    done += ["base/FastPitch_checkpoint_8.pt", "lj/FastPitch_checkpoint_200.pt"]
    for name in done:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    again = run_bash(
        ROOT / SCRIPT, PYTHON="echo", NUM_GPUS="0", OUTPUT_DIR=tmp_path, DATASET_PATH=tmp_path, VOICES=tmp_path / "v"
    )
    assert again.returncode == 0, again.stderr
    assert again.stdout.count(" is there\n") == len(done) and "train.py" not in again.stdout
    assert again.stdout.count("scripts.strip_checkpoint") == 2


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Embedded speech of two pitches, and as recordings three clips of it."""
    folder = tmp_path_factory.mktemp("corpora")
    (folder / "sentences.txt").write_text("Good day.\nGood night.\nThe boat left the harbor early.\n")
    words = ["--sentences", str(folder / "sentences.txt"), "--n-validation", "1"]
    make_corpus.main(["-o", str(folder / "us"), *words, "--speakers", "p75=75", "p90=90"])
    make_corpus.main(["-o", str(folder / "lj"), *words])
    return folder


def test_lists_leave_out_what_is_held_back_and_repeat_few_recordings(corpora: Path, tmp_path: Path):
    words = ["-o", str(tmp_path), "--recordings", str(corpora / "lj"), "--embedded", f"us={corpora / 'us'}"]
    voice_lists.main([*words, "--held-back", "EM-0002", "--speakers", "p90"])
    lists = {path.stem: path.read_text().splitlines() for path in tmp_path.glob("*.txt")}
    assert lists["held_back"] == ["wavs/EM-0002.wav|good night."]
    assert lists["lj_train"] == ["wavs/EM-0001.wav|good day.", "wavs/EM-0003.wav|the boat left the harbor early."]
    assert not any("lj/EM-0002" in line for line in lists["vocoder_train"])
    assert all((tmp_path / line).is_file() for line in [*lists["vocoder_train"], *lists["vocoder_val"]])
    assert {line.rpartition("|")[2] for line in lists["base_train"]} == {"p90"}
    assert voice_lists.vocoder_list(["a"], ["b"] * 4) == ["a"] * 6 + ["b"] * 4
    with pytest.raises(InputError, match="0 clips to train on"):
        voice_lists.main([*words, "--held-back", "EM-0001", "EM-0002", "EM-0003"])
