"""Scripts for voices without durations: train.sh, finetune_voice.sh, corpora of several speakers."""

from pathlib import Path

import pytest
from test_scripts import ROOT, dry_run, run_bash

import train
from scripts import make_corpus, two_speakers
from scripts.demos.quickstart import CommandError


def test_train_sh_trains_without_durations_when_it_is_asked_to():
    _, options = dry_run(
        "scripts/train.sh", LEARNED_ALIGNMENT="true", ENERGY="true", PITCH_METHOD="pyin", NUM_SPEAKERS="auto"
    )
    args = train.parse_args(options)
    assert (args.learned_alignment, args.energy_conditioning, args.pitch_method) == (True, True, "pyin")
    assert (args.n_speakers, args.pitch_mean_std_file) == (None, None)
    assert args.training_files == Path("filelists/ljs_audio_text_train_filelist.txt")
    assert args.validation_files == Path("filelists/ljs_audio_text_val_filelist.txt")


def test_finetune_voice_sh_starts_a_new_training_from_the_checkpoint():
    lines = run_bash(
        ROOT / "scripts/finetune_voice.sh",
        *("voice.pt", "my/anna/", "--text-cleaners", "english_cleaners"),
        DRY_RUN="1",
        PYTHON="the-python",
        NUM_GPUS="1",
    ).stdout.splitlines()
    assert lines[0].split()[:3] == ["the-python", "-m", "scripts.datasets.make_filelists"]
    assert "--speaker anna" in lines[0]
    assert "--output ./output/anna/filelists" in lines[0]
    words = lines[1].split()
    for option, value in {
        "--from-checkpoint": "voice.pt",
        "--dataset-path": "my/anna",
        "--output": "./output/anna",
        "--training-files": "./output/anna/filelists/anna_audio_text_train_filelist.txt",
        "--epochs": "200",
        "--learning-rate": "0.05",
        "--warmup-steps": "50",
        "--ema-decay": "0.98",
        "--text-cleaners": "english_cleaners",
    }.items():
        assert words[words.index(option) + 1] == value
    assert {"--resume", "--learned-alignment", "--cuda"} <= set(words)


@pytest.mark.parametrize(
    ("arguments", "variables", "status", "message"),
    [
        (["voice.pt"], {}, 2, "expected: bash scripts/finetune_voice.sh CHECKPOINT DATASET"),
        (["no.pt", "tests"], {}, 1, "no.pt: no such checkpoint"),
        (["README.md", "no_folder"], {}, 1, "no_folder: no such folder"),
        (["README.md", "tests"], {"NUM_GPUS": "0"}, 1, "tests/metadata.csv: no such file; it lists clip|transcript"),
        (["README.md", "tests"], {"VAL_FILELIST": "a", "NUM_GPUS": "0"}, 2, "VAL_FILELIST needs TRAIN_FILELIST too"),
        (["README.md", "tests"], {"BS": "many"}, 2, "BS=many: expected a whole number"),
    ],
)
def test_finetune_voice_sh_refuses_in_one_line(
    arguments: list[str], variables: dict[str, str], status: int, message: str
):
    result = run_bash(ROOT / "scripts/finetune_voice.sh", *arguments, PYTHON="python3", **variables)
    assert result.returncode == status
    assert len(result.stderr.splitlines()) == 1
    assert message in result.stderr


def test_a_corpus_of_several_speakers_names_them_in_its_lists(tmp_path: Path):
    (tmp_path / "sentences.txt").write_text("Good day.\nGood night.\n")
    words = ["-o", str(tmp_path / "two"), "--sentences", str(tmp_path / "sentences.txt"), "--n-validation", "1"]
    make_corpus.main([*words, "--speakers", "low=20", "high=90"])
    lines = [line for name in ("train.txt", "val.txt") for line in (tmp_path / "two" / name).read_text().splitlines()]
    assert sorted(lines) == [
        "wavs/high/EM-0001.wav|good day.|high",
        "wavs/high/EM-0002.wav|good night.|high",
        "wavs/low/EM-0001.wav|good day.|low",
        "wavs/low/EM-0002.wav|good night.|low",
    ]
    high, low = (sorted((tmp_path / "two" / "wavs" / name).glob("*.wav")) for name in ("high", "low"))
    assert two_speakers.mean_pitch(high) > 1.3 * two_speakers.mean_pitch(low)
    with pytest.raises(SystemExit):
        make_corpus.main([*words, "--speakers", "low=200"])


@pytest.mark.slow
def test_two_speakers_trained_without_durations_are_told_apart_by_their_mean_pitch(tmp_path: Path, capfd):
    try:
        assert two_speakers.main(["-o", str(tmp_path), "--n-sentences", "40", "--n-phrases", "3"]) == 0
    except CommandError as error:
        pytest.fail(f"a command ended with status {error.status}")
    out = capfd.readouterr().out
    assert "low    recorded" in out
    assert "high   recorded" in out
