"""Scripts use the machine that they run on: its GPUs, the Python that is named, and commands that work there."""

import os
import shlex
import sys
import tarfile
from pathlib import Path

import pytest
from shell import ROOT, n_processes, paste, run_bash


@pytest.fixture
def two_gpus(tmp_path: Path) -> dict[str, str]:
    """Variables of a machine whose nvidia-smi lists two GPUs, none of them hidden."""
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nprintf 'GPU 0: H100 (UUID: GPU-a)\\n  MIG 1g\\nGPU 1: H100\\n'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": "0,1"}


def last_command(script: str, *words: str, **variables: str | Path) -> list[str]:
    result = run_bash(ROOT / script, *words, DRY_RUN="1", **variables)
    assert result.returncode == 0, result.stderr
    return shlex.split([line for line in result.stdout.splitlines() if line.startswith(sys.executable)][-1])


@pytest.mark.parametrize(("visible", "number"), [(None, 2), ("0,1", 2), ("1", 1), ("", 0), ("-1", 0), ("GPU-a", 1)])
def test_training_uses_all_gpus_that_are_not_hidden(two_gpus: dict[str, str], visible: str | None, number: int):
    hide = "unset CUDA_VISIBLE_DEVICES;" if visible is None else f"CUDA_VISIBLE_DEVICES={visible}"
    result = paste(f"{hide} bash scripts/train.sh", DRY_RUN="1", PATH=two_gpus["PATH"])
    words = shlex.split(result.stdout)
    assert (n_processes(words), "--cuda" in words) == (max(number, 1), number > 0)
    assert ("no GPU: training on the CPU" in result.stderr) == (number == 0)


def test_without_a_gpu_training_says_what_to_set_where_memory_is_short():
    result = run_bash(ROOT / "scripts/train.sh", DRY_RUN="1", MODEL="Jasper")
    advice = "where memory is short, lower BS and raise GRAD_ACCUMULATION as much"
    assert result.stderr.splitlines()[0] == f"no GPU: training on the CPU; {advice}"
    assert run_bash(ROOT / "scripts/train.sh", DRY_RUN="1", MODEL="Jasper", NUM_GPUS="0", BS="256").stderr == ""


ONE_PROCESS = {
    "inference_example.sh": {"FASTPITCH": "v.pt"},
    "evaluate_voice.sh": {},
    "evaluation.sh": {"JASPER": "j.pt"},
    "extract_fine_tune_mels.sh": {"FASTPITCH": "v.pt"},
    "inference_benchmark.sh": {"FASTPITCH": "v.pt"},
    "train_digits.sh": {},
    "benchmark.sh feed": {},
    "serve.sh": {"FASTPITCH": "v.pt"},
}


@pytest.mark.parametrize(("name", "variables"), ONE_PROCESS.items())
def test_a_command_of_one_process_uses_a_gpu_if_there_is_one(
    two_gpus: dict[str, str], name: str, variables: dict[str, str]
):
    script, *words = name.split()

    def cuda(**more: str) -> bool:
        return "--cuda" in last_command(f"scripts/{script}", *words, **(two_gpus | variables | more))

    assert cuda() and not cuda(NUM_GPUS="0") and not cuda(CUDA_VISIBLE_DEVICES="")
    assert not cuda(CPU="true") and not cuda(CUDA="false"), "older names"
    assert cuda(CUDA="true", CUDA_VISIBLE_DEVICES="")
    refused = run_bash(ROOT / "scripts" / script, *words, DRY_RUN="1", NUM_GPUS="2", **variables)
    assert (refused.returncode, refused.stderr.count("NUM_GPUS=2: expected auto, 0 or 1")) == (2, 1)


def test_fine_tuning_a_voice_uses_one_gpu_and_the_benchmarks_as_many_as_there_are(two_gpus: dict[str, str]):
    def commands(**more: str) -> list[list[str]]:
        result = run_bash(ROOT / "scripts/finetune_voice.sh", "v.pt", "my_voice", DRY_RUN="1", **two_gpus, **more)
        return [shlex.split(line) for line in result.stdout.splitlines()]

    used = [(n_processes(words), "--cuda" in words) for words in commands()[1::2]]
    assert used == [(1, True)] * 3, "training, and an evaluation before and after"
    assert n_processes(commands(NUM_GPUS="2")[1]) == 2
    for name in ("benchmark_train", "train_benchmark"):
        table = last_command(f"scripts/{name}.sh", AMP="false", **two_gpus)
        assert "2=output/" in table[-1] and "/gpus2" in table[-1]
    table = last_command("scripts/train_benchmark_jasper.sh", AMP="false", **two_gpus)
    assert [word.partition("=")[0] for word in table[3:]] == ["1"], "of 1, 4 and 8"
    assert "gpus0" in last_command("scripts/train_benchmark_jasper.sh", AMP="false")[-1]


@pytest.fixture
def toolkit(tmp_path: Path) -> Path:
    """A copy of the scripts in a folder with spaces, without .venv, beside a Python that notes how it was called."""
    folder = tmp_path / "the toolkit"
    folder.mkdir()
    for name in ("scripts", "filelists", "requirements.txt"):
        (folder / name).symlink_to(ROOT / name)
    # It makes the lists of extract_mels.py, whose text is in IPA.
    (tmp_path / "py").write_text(
        f"""#!/usr/bin/env bash
[ "$2" != speech_toolkit ] || PYTHONPATH='{ROOT}' exec '{sys.executable}' "$@"
echo "$*" >>'{tmp_path}/calls'
[[ "$1" = *extract_mels.py ]] || exit 0
while [ "$1" != --output-meta-file ]; do shift; done
shift
while [[ "$1" != --* ]]; do echo 'mels/a.pt|durations/a.pt|pitch_char/a.pt|h ə l oʊ' >"$1"; shift; done
"""
    )
    (tmp_path / "py").chmod(0o755)
    return folder


def test_the_python_that_is_named_runs_the_scripts_and_no_environment_is_made(toolkit: Path):
    script, python, calls = toolkit / "scripts/quickstart.sh", toolkit.parent / "py", toolkit.parent / "calls"
    (toolkit.parent / "python3").symlink_to(python)
    system = {"USE_SYSTEM_PYTHON": "1", "PYTHON": "", "PATH": f"{toolkit.parent}:{os.environ['PATH']}"}
    for variables in ({"PYTHON": python}, system):
        result = run_bash(script, **variables)
        assert result.returncode == 0, result.stderr
    assert calls.read_text() == 2 * "-m scripts.demos.quickstart\n" and not (toolkit / ".venv").exists()
    absent = run_bash(script, PYTHON="/absent/python")
    assert (absent.returncode, len(absent.stderr.splitlines())) == (2, 1)
    assert absent.stderr.startswith("error: PYTHON=/absent/python: no such program")


def test_a_linter_that_finds_something_does_not_keep_the_tests_from_running(tmp_path: Path):
    (tmp_path / "py").write_text('#!/usr/bin/env bash\n[ "$2" != ruff ]\n')
    (tmp_path / "py").chmod(0o755)
    result = run_bash(ROOT / "scripts/test.sh", PYTHON=tmp_path / "py")
    reported = ["tests: passed", "ruff: failed", "import-linter: passed", "mypy: passed"]
    assert (result.returncode, result.stdout.splitlines()) == (1, reported)


def next_commands(output: str) -> list[str]:
    return [line.partition(": ")[2] for line in output.splitlines() if line.startswith("next")]


def dry_run_next(command: str) -> list[str]:
    """The words of the command that a command printed as the next one would run."""
    result = paste(command, DRY_RUN="1")
    assert result.returncode == 0, f"{command}: {result.stderr}"
    return shlex.split(result.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("durations", "variables", "options"),
    [
        ("TextGrid/a.TextGrid", {}, ["--input-type", "phone", "--symbol-set", "ipa"]),
        (None, {"TACOTRON2_CHECKPOINT": "t.pt"}, []),
        ("durations/a.pt", {}, []),
        (None, {"FEATURES": "false"}, ["--learned-alignment"]),
        (None, {}, ["--learned-alignment"]),
    ],
)
def test_what_preparing_a_corpus_names_next_runs_with_its_lists(
    toolkit: Path, durations: str | None, variables: dict[str, str], options: list[str]
):
    corpus, lists = toolkit.parent / "my $corpus's", toolkit.parent / "my lists"
    (corpus / "wavs").mkdir(parents=True)
    lists.mkdir()
    for split in ("train", "val", "test"):
        (lists / f"my_audio_text_{split}_filelist.txt").write_text("wavs/a.wav|Hello.\n")
    if durations:
        (corpus / durations).parent.mkdir()
        (corpus / durations).touch()
    named = {"DATASET_PATH": corpus, "FILELISTS": lists, "NAME": "my", "PYTHON": toolkit.parent / "py"}
    result = run_bash(toolkit / "scripts/prepare_dataset.sh", **named, **variables)
    assert result.returncode == 0, result.stderr
    *others, voice, vocoder = map(dry_run_next, next_commands(result.stdout))
    assert len(others) == (variables == {} and durations is None), "Tacotron 2 learns from the mels that are made"
    models = [*(["Tacotron2"] * len(others)), "FastPitch", "HiFi-GAN"]
    for words, model in zip((*others, voice, vocoder), models, strict=True):
        assert words[words.index("--model") + 1] == model
        assert words[words.index("--dataset-path") + 1] == str(corpus)
        for option in ("--training-files", "--validation-files"):
            assert Path(words[words.index(option) + 1]).is_file(), "the lists are there"
        assert "--cuda" not in words and "torch.distributed.run" not in words, "there is no GPU"
    for word in options:
        assert word in voice


def test_the_digits_are_unpacked_and_trained_on_next(tmp_path: Path):
    top = "free-spoken-digit-dataset-1.0.10"
    (tmp_path / "wavs").mkdir()
    for digit in range(10):
        (tmp_path / f"wavs/{digit}_ann_0.wav").touch()
    with tarfile.open(tmp_path / "d.tar", "w") as archive:
        archive.add(tmp_path / "wavs", f"{top}/recordings")
    settings = {"DATASET_ARCHIVE": f"file://{tmp_path}/d.tar", "DATASET": tmp_path / "my digits"}
    result = run_bash(ROOT / "scripts/download_fsdd.sh", **settings)
    assert result.returncode == 0, result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.tar", "my digits", "wavs"]
    (command,) = next_commands(result.stdout)
    assert f"{tmp_path}/my digits/recordings" in dry_run_next(command)
    again = run_bash(ROOT / "scripts/download_fsdd.sh", **settings)
    assert "exists already" in again.stdout and next_commands(again.stdout) == [command]
