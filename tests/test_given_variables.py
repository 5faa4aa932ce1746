"""Variables of the scripts: a switch may be said in several ways, and a wrong value is refused first."""

import itertools
from pathlib import Path

import pytest
from shell import ROOT, dry_run, run_bash

from scripts.start import SCRIPTS, variables_of

SWITCHES = [  # script, variable, what it needs besides, and the word that it adds to a command where it is on
    ("train", "AMP", {}, "--amp"),
    ("train", "LEARNED_ALIGNMENT", {"MODEL": "FastPitch", "TRAIN_FILELIST": "a_dur_b.txt"}, "--learned-alignment"),
    ("train", "CUDNN_BENCHMARK", {"MODEL": "WaveGlow"}, "--cudnn-benchmark"),
    ("inference_example", "EMA", {}, "--ema"),
    ("inference_benchmark", "TORCHSCRIPT", {}, "--torchscript"),
    ("inference_benchmark", "PAD_TO_MAX_DURATION", {"MODEL": "Jasper"}, "--pad-to-max-duration"),
    ("download_librispeech", "VERIFY", {}, "--sha256"),
    ("train_benchmark", "LARGEST_BATCH", {}, "--largest-batch"),
    ("prepare_dataset", "FEATURES", {"TACOTRON2_CHECKPOINT": "t.pt"}, "extract_mels.py"),
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
    ("script", "setting"),
    [
        ("evaluation", "MANIFESTS=a/test.json b/test.json"),
        ("train", "NUM_GPUS=-1"),
        ("train_benchmark", "BS=4 ../../x"),
        ("train_benchmark", "AMP=true /../../x"),
        ("train", "BS=99999999999999999999"),
        ("preprocess_librispeech", "N_WORKERS=0"),
        ("download_librispeech", "SUBSETS=*"),
        ("inference_benchmark", "BS_SEQUENCE=0"),
        ("train_voices", "STAGES=all"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_that_names_the_variable(script: str, setting: str):
    name, _, value = setting.partition("=")
    result = run_bash(ROOT / f"scripts/{script}.sh", DRY_RUN="1", **{name: value})
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert (result.returncode, result.stdout, len(lines)) == (2, "", 1)
    assert lines[0].startswith(f"error: {name}")


def test_a_dry_run_may_be_asked_for_in_any_of_these_words():
    assert "serve.py" in run_bash(ROOT / "scripts/serve.sh", DRY_RUN="Yes").stdout
    refused = run_bash(ROOT / "scripts/serve.sh", DRY_RUN="si")
    assert (refused.returncode, refused.stderr[:20]) == (2, "error: DRY_RUN=si: e")


def test_every_variable_has_a_meaning_and_stands_once():
    for script in SCRIPTS.values():
        names = [variable.name for variable in variables_of(script)]
        assert len(names) == len(set(names))
        assert all(variable.meaning for variable in variables_of(script))


@pytest.mark.parametrize("script", ["train", "prepare_dataset", "inference_example", "serve", "evaluation"])
def test_no_value_of_a_variable_is_run(script: str, tmp_path: Path):
    canary = tmp_path / "canary"
    for name, value in itertools.product(
        ("NAME", "DATASET_PATH", "NUM_GPUS", "OUTPUT_DIR"),
        ("$(touch {})", "a;touch {}", "a[$(touch {})]", "`touch {}`"),
    ):
        run_bash(ROOT / f"scripts/{script}.sh", DRY_RUN="1", **{name: value.format(canary)})
    assert not canary.exists()
