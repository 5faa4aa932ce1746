"""Variables of the scripts: a switch may be said in several ways, and a wrong value is refused first."""

import itertools
from pathlib import Path

import pytest
from shell import ROOT, dry_run, run_bash

SWITCHES = [  # script, variable, what it needs besides, and the word that it adds to a command where it is on
    ("train", "AMP", {}, "--amp"),
    ("train", "LEARNED_ALIGNMENT", {"MODEL": "FastPitch", "TRAIN_FILELIST": "a_dur_b.txt"}, "--learned-alignment"),
    ("inference_benchmark", "PAD_TO_MAX_DURATION", {"MODEL": "Jasper"}, "--pad-to-max-duration"),
    ("download_librispeech", "VERIFY", {}, "--sha256"),
]


@pytest.mark.parametrize(("script", "name", "base", "word"), SWITCHES)
def test_a_switch_is_true_or_false_and_nothing_else(script: str, name: str, base: dict[str, str], word: str):
    for value, on in (("true", True), ("false", False)):
        commands = dry_run(f"scripts/{script}.sh", **base, **{name: value})
        assert any(word in words for words in commands) == on
    refused = run_bash(ROOT / f"scripts/{script}.sh", DRY_RUN="1", **base, **{name: "maybe"})
    assert refused.returncode == 2
    assert f"error: {name}=maybe: expected " in refused.stderr and "true" in refused.stderr


@pytest.mark.parametrize(
    ("command", "variables", "message"),
    [
        ("train", {"BS": "many"}, "BS=many: expected a whole number of at least 1 and at most 1e+07"),
        ("train", {"NNODES": "2", "NUM_GPUS": "0"}, "NNODES=2 needs MASTER_ADDR, the host name of the first machine"),
        ("train", {"MODEL": "Bark"}, "MODEL=Bark: expected one of FastPitch Tacotron2 HiFi-GAN WaveGlow Harmonic Ja"),
        ("train_jasper", {"BATCH_SIZE": "64", "GRAD_ACCUMULATION": "3"}, "BATCH_SIZE=64: expected a multiple of GRAD"),
        ("train_benchmark", {"BS": "4 x"}, "BS"),
        ("evaluation", {"MANIFESTS": "a/test.json b/test.json"}, "MANIFESTS"),
        ("download_cmudict", {"CMUDICT_DIR": "a"}, "CMUDICT_DIR=a: of the original script; the dictionary is in"),
        ("finetune_voice voice.pt", {}, "expected: bash scripts/finetune_voice.sh [CHECKPOINT] DATASET"),
        ("serve", {"DRY_RUN": "si"}, "DRY_RUN=si: expected"),
    ],
)
def test_a_value_that_cannot_be_is_refused_in_one_line(command: str, variables: dict[str, str], message: str):
    script, *words = command.split()
    result = run_bash(ROOT / f"scripts/{script}.sh", *words, **({"DRY_RUN": "1"} | variables))
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert (result.returncode, result.stdout, len(lines)) == (2, "", 1)
    assert lines[0].startswith(f"error: {message}")


@pytest.mark.parametrize(
    ("command", "variables", "message"),
    [
        ("train", {"MODEL": "FastPitch", "NUM_GPUS": "8"}, "NUM_GPUS=8, but PyTorch sees 0 GPUs here; NUM_GPUS=0 is f"),
        ("fine_tune", {"INPUT_MELS_DIR": "/absent"}, "/absent: no such folder; scripts/extract_fine_tune_mels.sh"),
        ("finetune_voice no.pt tests", {}, "no.pt: no such checkpoint"),
        ("finetune_voice README.md no_folder", {}, "no_folder: no such folder"),
        ("finetune_voice README.md tests", {}, "tests/metadata.csv: no such file; it lists clip|transcript"),
        ("prepare_dataset", {"DATASET_PATH": "/absent"}, "/absent: no such folder"),
        ("prepare_dataset", {"DATASET_PATH": "tests", "FEATURES": "true"}, "no durations: put TextGrids"),
        ("evaluation", {"JASPER": "j.pt", "DATASET_PATH": "/absent"}, "/absent/librispeech-dev-clean-wav.json: no"),
    ],
)
def test_what_is_missing_is_said_in_one_line(command: str, variables: dict[str, str], message: str):
    script, *words = command.split()
    result = run_bash(ROOT / f"scripts/{script}.sh", *words, **variables)
    assert (result.returncode, len(result.stderr.splitlines())) == (1, 1)
    assert result.stderr.startswith("error: ") and message in result.stderr


@pytest.mark.parametrize("script", ["train", "evaluation"])
def test_no_value_of_a_variable_is_run(script: str, tmp_path: Path):
    canary = tmp_path / "canary"
    for name, value in itertools.product(
        ("NAME", "DATASET_PATH", "NUM_GPUS", "OUTPUT_DIR"),
        ("$(touch {})", "a;touch {}", "a[$(touch {})]", "`touch {}`"),
    ):
        run_bash(ROOT / f"scripts/{script}.sh", DRY_RUN="1", **{name: value.format(canary)})
    assert not canary.exists()
