"""Variables of the scripts: a switch may be said in several ways, and a wrong value is refused first."""

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from shell import ROOT

from scripts.options_page import variables_of

# Runs each script in a subshell of one Bash, as if it were started alone; words of a case are separated by a newline.
DRIVER = """
while IFS= read -r -d '' case; do
    eval "words=($case)"
    out=$( (
        for word in "${words[@]:1}"; do export "$word"; done
        set -- && source "${words[0]}"
    ) 2>"$ERRORS")
    printf '%s\\0%s\\0%s\\0' "$?" "$out" "$(<"$ERRORS")"
done
"""
SCRIPTS = sorted(path for path in ROOT.glob("scripts/**/*.sh") if path.parent.name != "lib" and path.name != "lib.sh")


class Case(NamedTuple):
    """A script and its variables, NAME=value."""

    script: str
    variables: tuple[str, ...]


class Outcome(NamedTuple):
    """What a dry run ends with and prints."""

    status: int
    commands: str
    messages: str


def dry_runs(cases: list[Case], tmp_path: Path, **environment: str) -> list[Outcome]:
    """The outcome of each case, of one Bash."""
    stdin = "".join(shlex.join([str(ROOT / script), *variables]) + "\0" for script, variables in cases)
    environment |= {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "CUDA_VISIBLE_DEVICES": "",
        "DRY_RUN": "1",
    }
    environment |= {"PYTHON": "py", "ERRORS": str(tmp_path / "errors")}
    done = subprocess.run(
        ["bash", "-c", DRIVER], cwd=tmp_path, env=environment, input=stdin, capture_output=True, text=True, check=False
    )
    words = done.stdout.split("\0")[:-1]
    assert len(words) == 3 * len(cases), done.stderr
    return [Outcome(int(words[i]), words[i + 1], words[i + 2]) for i in range(0, len(words), 3)]


SWITCHES = {  # script and variable, with what it needs besides, and the word that it adds to a command where it is on
    ("train", "AMP"): ((), "--amp"),
    ("train", "LEARNED_ALIGNMENT"): (("MODEL=FastPitch", "TRAIN_FILELIST=a_dur_b.txt"), "--learned-alignment"),
    ("train", "ENERGY"): (("MODEL=FastPitch", "LEARNED_ALIGNMENT=true"), "--energy-conditioning"),
    ("train", "CUDNN_BENCHMARK"): (("MODEL=WaveGlow",), "--cudnn-benchmark"),
    ("train", "LOAD_MEL_FROM_DISK"): (("MODEL=Tacotron2",), "--load-mel-from-disk"),
    ("train", "APPEND_SPACES"): ((), "--prepend-space-to-text"),
    ("inference_example", "AMP"): ((), "--amp"),
    ("inference_example", "EMA"): ((), "--ema"),
    ("inference_benchmark", "TORCHSCRIPT"): ((), "--torchscript"),
    ("inference_benchmark", "PAD_TO_MAX_DURATION"): (("MODEL=Jasper", "BATCH_SIZE_SEQ=1"), "--pad-to-max-duration"),
    ("download_librispeech", "VERIFY"): ((), "--sha256"),
    ("train_benchmark", "LARGEST_BATCH"): ((), "scripts.benchmarks.largest_batch"),
    ("prepare_dataset", "FEATURES"): (("TACOTRON2_CHECKPOINT=t.pt",), "extract_mels.py"),
}


def test_a_switch_may_be_said_in_several_ways_and_nothing_else(tmp_path: Path):
    on, off, wrong = ("1", "TRUE", "Yes", "on"), ("0", "False", "NO", "off"), ("maybe", "2", "true true", "y")
    chosen = [(key, word) for i, key in enumerate(SWITCHES) for words in (on, off, wrong) for word in (words[i % 4],)]
    chosen += [(("train", "AMP"), word) for word in (*on, *off, *wrong)]
    cases = [Case(f"scripts/{key[0]}.sh", (*SWITCHES[key][0], f"{key[1]}={word}")) for key, word in chosen]
    for ((script, name), word), (status, commands, messages) in zip(chosen, dry_runs(cases, tmp_path), strict=True):
        if word in wrong:
            assert (status, commands) == (2, ""), (name, word)
            assert messages.startswith(f"error: {name}={word}: expected ") and "true or false" in messages
        else:
            added = SWITCHES[script, name][1]
            assert (status, f" {added} " in commands) == (0, word in on), (name, word, messages)


def test_every_switch_of_a_script_is_read_as_one(tmp_path: Path):
    cases = [
        Case(path.relative_to(ROOT).as_posix(), (*(["MODEL=Jasper"] if "Jasper" in meaning else []), f"{name}=maybe"))
        for path in SCRIPTS
        for name, (_, meaning) in variables_of(path).items()
        if ("`true`" in meaning or "`false`" in meaning or "false:" in meaning) and name not in ("PAD_TO_MAX_DURATION",)
    ]
    assert len(cases) > 20
    for (script, variables), outcome in zip(cases, dry_runs(cases, tmp_path), strict=True):
        refusal = re.sub(r"^note: MODEL=.* set MODEL for another\n", "", outcome.messages)
        assert (outcome.status, refusal.count("\n")) == (2, 0), (script, variables, outcome)


def test_a_dry_run_may_be_asked_for_in_any_of_these_words(tmp_path: Path):
    shown, refused = dry_runs(
        [Case("scripts/serve.sh", ("DRY_RUN=Yes",)), Case("scripts/serve.sh", ("DRY_RUN=si",))], tmp_path
    )
    assert shown.commands.startswith("py serve.py")
    assert (refused.status, refused.messages[:20]) == (2, "error: DRY_RUN=si: e")


REFUSED = [
    ("train", "NAME=../../evil"),
    ("train", "NAME=.."),
    ("train", "NAME=a|b"),
    ("train", "NAME=-rf"),
    ("train", "NAME=" + "é" * 51),
    ("fine_tune", "NAME=a/b"),
    ("prepare_dataset", "NAME=/etc"),
    ("extract_fine_tune_mels", "NAME=../x"),
    ("evaluation", "DATASETS=dev-clean ../../etc"),
    ("inference", "DATASET=../../etc"),
    ("train", "NUM_GPUS=08"),
    ("train", "NUM_GPUS=-1"),
    ("train", "NUM_GPUS=999999999999"),
    ("train", "NUM_GPUS=1.0"),
    ("train_benchmark", "NUM_GPUS=1 08"),
    ("train_benchmark", "BS=4 ../../x"),
    ("train_benchmark", "GRAD_ACCUMULATION=../../x"),
    ("train_benchmark", "AMP=true /../../x"),
    ("train_benchmark", "EPOCHS=1 2"),
    ("train", "BATCH_SIZE=abc"),
    ("train", "BS=99999999999999999999"),
    ("train", "BS=0"),
    ("train", "NNODES=0x10"),
    ("train", "PORT=65536"),
    ("train", "OUTPUT_DIR=--resume"),
    ("train", "OUTPUT_DIR=a\nb"),
    ("train", "DATASET_PATH=a\x1b[31mb"),
    ("train", "TEXT_CLEANERS=english_cleaners --amp"),
    ("train", "MODEL=FastPitch Tacotron2"),
    ("train_voices", "HELD_BACK=a --output"),
    ("preprocess_librispeech", "SUBSETS=a -o"),
    ("preprocess_librispeech", "N_WORKERS=0"),
    ("download_librispeech", "SUBSETS=@"),
    ("download_librispeech", "SUBSETS=*"),
    ("serve", "SPEECH_API_KEY=a\nb"),
    ("train", "NODE_RANK=1"),
    ("evaluation", "MANIFESTS=a/test.json b/test.json"),
]


def test_what_cannot_be_is_refused_in_one_line_that_names_the_variable(tmp_path: Path):
    cases = [
        Case(f"scripts/{script}.sh", (variable, *(["MODEL=HiFi-GAN"] if "BATCH_SIZE" in variable else [])))
        for script, variable in REFUSED
    ]
    for (script, variable), outcome in zip(REFUSED, dry_runs(cases, tmp_path), strict=True):
        assert (outcome.status, outcome.commands) == (2, ""), (script, variable, outcome)
        assert outcome.messages.startswith("error: " + variable.partition("=")[0]), (variable, outcome)
        assert "\n" not in outcome.messages and "\x1b" not in outcome.messages and len(outcome.messages) < 300


def test_a_finetuned_voice_of_a_folder_without_a_name_needs_one(tmp_path: Path):
    done = subprocess.run(
        ["bash", str(ROOT / "scripts/finetune_voice.sh"), "voice.pt", ".."],
        env={"PATH": os.environ["PATH"], "DRY_RUN": "1", "PYTHON": "py"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.startswith("error: SPEAKER=..: expected a name without /")) == (2, True)


def test_words_of_a_variable_are_neither_options_nor_patterns(tmp_path: Path):
    (tmp_path / "a.txt").touch()
    cases = [
        Case("scripts/train.sh", ("EPOCHS=1 --amp",)),
        Case("scripts/train.sh", ("MODEL=Jasper", "DATASET_PATH=100%s clips")),
        Case("scripts/evaluation.sh", ("DATASET_PATH=my clips", "DATASETS=dev-clean")),
        Case("scripts/evaluation.sh", ("MANIFESTS=*",)),
    ]
    epochs, training, folder, pattern = (outcome.commands for outcome in dry_runs(cases, tmp_path))
    assert " --epochs 1\\ --amp " in epochs
    assert " 100%s\\ clips/librispeech-train-clean-100-wav.json " in training
    assert " --input my\\ clips/librispeech-dev-clean-wav.json " in folder
    assert " --input \\* " in pattern


def test_a_word_before_the_arguments_is_of_a_variable_that_there_is():
    command = ["bash", str(ROOT / "scripts/train.sh"), "EPOCH=5"]
    environment = {"PATH": os.environ["PATH"], "DRY_RUN": "1", "PYTHON": "py"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    said = "error: EPOCH=5: scripts/train.sh has no variable EPOCH; its --help lists them\n"
    assert (done.returncode, done.stderr) == (2, said)


# What Bash would run if it computed with a value.
HOSTILE = "a[$(touch ran)]"
COMPUTED = (
    *(("train", name) for name in ("BS", "NUM_GPUS", "NNODES", "GRAD_ACCUMULATION", "WORLD_SIZE", "NODE_RANK", "PORT")),
    *(("train", name) for name in ("CUDA_VISIBLE_DEVICES", "RANK", "EPOCHS", "EMA", "AMP", "MODEL", "NAME")),
    *(("train_benchmark", name) for name in ("BS", "NUM_GPUS", "GRAD_ACCUMULATION", "EPOCHS", "CLIPS", "AMP")),
    *(("train_benchmark_jasper", name) for name in ("BATCH_SIZE_SEQ", "NUM_GPUS_SEQ", "SEQUENCES", "EPOCHS")),
    *(("inference_benchmark", name) for name in ("BS_SEQUENCE", "REPEATS", "WARMUP")),
    *(("inference_benchmark_jasper", name) for name in ("BATCH_SIZE_SEQ", "MAX_DURATION_SEQ", "ITERATIONS")),
    *(("prepare_dataset", name) for name in ("N_VAL", "FEATURES", "NAME")),
    *(("docker/interactive", name) for name in ("PORT", "NUM_GPUS")),
    ("benchmark_train", "BS"),
    ("finetune_voice", "BS"),
)


def run_hostile(cases: list[Case], tmp_path: Path) -> None:
    """No case runs what its variables hold."""
    for case, outcome in zip(cases, dry_runs(cases, tmp_path), strict=True):
        assert outcome.status in (0, 1, 2) and outcome.messages.count("error:") <= 1, (case, outcome)
        assert "syntax error" not in outcome.messages and "unbound" not in outcome.messages, (case, outcome)
    assert not [*tmp_path.rglob("ran")] and not (ROOT / "ran").exists()


def test_bash_computes_with_no_value_that_could_run_a_command(tmp_path: Path):
    run_hostile([Case(f"scripts/{script}.sh", (f"{name}={HOSTILE}",)) for script, name in COMPUTED], tmp_path)


@pytest.mark.slow
def test_no_variable_of_any_script_is_run(tmp_path: Path):
    names = [(path.relative_to(ROOT).as_posix(), name) for path in SCRIPTS for name in variables_of(path)]
    run_hostile(
        [Case(script, (f"{name}={value}",)) for script, name in names for value in (HOSTILE, "$(touch ran)", "08")],
        tmp_path,
    )
