"""Scripts answer --help, what they and the documents show runs when pasted, and they use the machine they run on."""

import os
import shlex
import sys
from pathlib import Path

import pytest
from shell import ROOT, dry_run, n_processes, paste, read_shell_file, run_bash, training_options, words_of
from test_documents import check_options, commands

SCRIPTS = sorted({*ROOT.glob("scripts/**/*.sh")} - {ROOT / "scripts/lib.sh"})


def examples(path: Path) -> list[str]:
    """The commands of a script's help, continued lines joined."""
    lines = read_shell_file(path).comment.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.startswith("  ")]


@pytest.mark.parametrize("name", ["scripts/inspect_checkpoint", "platform/T4_Jasper_AMP_8GPU"])
def test_help_is_the_comment_and_then_options_and_variables(name: str):
    path = ROOT / f"{name}.sh"
    answer = run_bash(path, "--resume", "-h").stdout
    assert answer.startswith(f"{read_shell_file(path).comment}\n\n") and "DRY_RUN=1" in answer and "PYTHON=" in answer
    assert ("Variables, set in front" in answer and "EPOCHS=" in answer and "--num-gpus" in answer) == (
        "inspect" not in name
    )


PASTED = {example for path in SCRIPTS for example in examples(path)} | {*commands()}


@pytest.mark.parametrize("command", sorted(PASTED))
def test_what_a_document_or_help_shows_has_commands_to_run_whose_options_exist(command: str):
    words = words_of(command)[1]
    if words[0] == "speech" or (words[0].endswith("python") and words[1:2] != ["-m"] and words[1].endswith(".py")):
        check_options(words)
        return
    if words[0] != "bash" or "--help" in command or "..." in command or "gpu output" in command or "gpu.sh" in command:
        return
    done = paste(command, DRY_RUN="1")
    assert done.returncode == 0, done.stderr
    assert any(
        words in done.stdout
        for words in (sys.executable, "speaking/bin/python", "exists already", "docker", "nothing to", "would be")
    )
    for words in map(shlex.split, done.stdout.splitlines()):
        if "train.py" in words:
            training_options(words)
        elif words[0] == sys.executable and not {"pytest", "ruff", "mypy", "-c"}.intersection(words):
            check_options(words)


@pytest.fixture
def two_gpus(tmp_path: Path) -> dict[str, str]:
    """Variables of a machine whose nvidia-smi lists two GPUs, none of them hidden."""
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nprintf 'GPU 0: H100 (UUID: GPU-a)\\n  MIG 1g\\nGPU 1: H100\\n'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    return {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": "0,1"}


@pytest.mark.parametrize(("visible", "number"), [(None, 2), ("0,1", 2), ("1", 1), ("", 0), ("-1", 0), ("GPU-a", 1)])
def test_training_uses_all_gpus_that_are_not_hidden(two_gpus: dict[str, str], visible: str | None, number: int):
    hide = "unset CUDA_VISIBLE_DEVICES;" if visible is None else f"CUDA_VISIBLE_DEVICES={visible}"
    result = paste(f"{hide} bash scripts/train.sh", DRY_RUN="1", PATH=two_gpus["PATH"])
    words = shlex.split(result.stdout)
    assert (n_processes(words), "--cuda" in words) == (max(number, 1), number > 0)
    assert ("no GPU: training on the CPU" in result.stderr) == (number == 0)


@pytest.mark.parametrize(
    ("script", "variables"), [("inference_example.sh", {"FASTPITCH": "v.pt"}), ("evaluate_voice.sh", {})]
)
def test_a_command_of_one_process_uses_a_gpu_if_there_is_one(
    two_gpus: dict[str, str], script: str, variables: dict[str, str]
):
    def cuda(**more: str) -> bool:
        return "--cuda" in dry_run(f"scripts/{script}", **(two_gpus | variables | more))[-1]

    assert cuda() and not cuda(NUM_GPUS="0") and not cuda(CUDA_VISIBLE_DEVICES="")
    assert not cuda(CPU="true") and not cuda(CUDA="false"), "older names"
    assert cuda(CUDA="true", CUDA_VISIBLE_DEVICES="")
    assert not cuda(CPU="true", NUM_GPUS="8"), "the CPU, whatever the number"
    for number in ("some", "2"):
        refused = run_bash(ROOT / "scripts" / script, DRY_RUN="1", NUM_GPUS=number, **variables)
        assert (refused.returncode, refused.stderr.count(f"NUM_GPUS={number}: expected auto")) == (2, 1)


@pytest.fixture
def toolkit(tmp_path: Path) -> Path:
    """A copy of the scripts in a folder with spaces, without .venv, beside a Python that notes how it was called."""
    folder = tmp_path / "the toolkit"
    folder.mkdir()
    (folder / "scripts").symlink_to(ROOT / "scripts")
    (tmp_path / "py").write_text(f"#!/usr/bin/env bash\necho \"$*\" >>'{tmp_path}/calls'\n")
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
