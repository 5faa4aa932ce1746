"""Every script answers --help at once, and what it and the documents show can be pasted and runs."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from shell import ROOT, run_bash
from test_documents import commands, words_of

from scripts.options_page import variables_of

SCRIPTS = sorted(path for path in ROOT.glob("scripts/*.sh") if path.name != "lib.sh")
PLATFORMS = sorted(ROOT.glob("platform/*.sh"))
ONE_OF_EACH_MODEL = [next(path for path in PLATFORMS if f"_{model}_" in path.name) for model in ("FastPitch", "Jasper")]
DECLARED = re.compile(r'^ *: "\$\{([A-Z][A-Z_0-9]*):?=', re.MULTILINE)
TABLED = re.compile(r"^([A-Z][A-Z_0-9]*) (?:-|--[a-z-]+)(?: |$)", re.MULTILINE)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """The scripts alone, without .venv, beside programs that must not be started and say so if they are."""
    (tmp_path / "bin").mkdir()
    for name in ("python3", "python", "nvidia-smi", "git"):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\ntouch '{tmp_path}/started'\n")
        (tmp_path / "bin" / name).chmod(0o755)
    for name in ("scripts", "platform"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def ask(bare: Path, script: str, *words: str) -> str:
    """What a script answers in an empty environment, from a foreign folder."""
    done = subprocess.run(
        ["bash", str(bare / script), *words],
        cwd="/",
        env={"PATH": f"{bare}/bin:{os.environ['PATH']}", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), script
    assert not (bare / "started").exists() and not (bare / ".venv").exists(), "help needs no program"
    return done.stdout


def examples(answer: str) -> list[str]:
    """The commands of a script's help, continued lines joined."""
    head = answer.partition("\n\n")[0].replace("\\\n", " ")
    return [line.strip() for line in head.splitlines() if line.startswith("  ")]


def shown_variables(answer: str) -> dict[str, tuple[str, str]]:
    """Name -> default and meaning in the table of a script's own variables."""
    table = re.search(r"\nVariables, set in front.*:\n((?:  .*\n)+)", answer)
    rows = re.findall(
        r"^  ([A-Z][A-Z_0-9]*)=(.*?)(?:\n {30,}|(?: {2,}))(\S.*)$", table[1] if table else "", re.MULTILINE
    )
    return {name: (default.strip(), meaning) for name, default, meaning in rows}


@pytest.mark.parametrize("path", [*SCRIPTS, *ONE_OF_EACH_MODEL], ids=lambda path: path.stem)
def test_each_script_says_what_it_does_with_examples_and_all_its_variables(bare: Path, path: Path):
    script = path.relative_to(ROOT).as_posix()
    answer = ask(bare, script, "--help")
    assert answer == ask(bare, script, "anything", "-h"), "anywhere among the arguments"
    assert re.match(r"[A-Z].{20,}?[.]\n", answer, re.DOTALL), "a sentence comes first"
    assert len([line for line in examples(answer) if path.name in line]) >= 2
    text = path.read_text()
    shown = shown_variables(answer)
    assert [name for name in (*DECLARED.findall(text), *TABLED.findall(text)) if name not in shown] == []
    assert [name for name, (_, meaning) in shown.items() if not meaning] == []
    for name, (default, _) in variables_of(path).items():  # docs/OPTIONS.md shows the same
        assert (
            shown[name][0].replace(" or ", "") == default.replace("`", "").replace(" or ", "") or "$" in shown[name][0]
        )
    assert "DRY_RUN=1" in answer and "PYTHON=" in answer


def test_a_script_that_runs_another_shows_or_names_the_variables_that_it_passes_on(bare: Path):
    waveglow = ask(bare, "scripts/train_waveglow.sh", "-h")
    assert "SEGMENT_LENGTH=" in waveglow and "\n  BATCH_SIZE=" in waveglow
    assert not {"LR_POLICY", "MODEL", "ENERGY"} & set(
        re.findall(r"^  ([A-Z_]+)=", waveglow.partition("Variables")[2], re.M)
    )
    assert waveglow.endswith(
        "Arguments go to train.py --model WaveGlow; `.venv/bin/python train.py --model WaveGlow --help` lists them.\n"
    )
    fine_tune = ask(bare, "scripts/fine_tune.sh", "-h")
    assert fine_tune.count("\n  EPOCHS=") == 1 and "\n  EPOCHS=10000 " in fine_tune, "its own default alone"
    benchmark = ask(bare, "scripts/train_benchmark_jasper.sh", "-h")
    assert "`bash scripts/train_benchmark.sh --help` lists them" in benchmark
    platform = ask(bare, "./platform/T4_FastPitch_AMP_1GPU.sh", "-h")
    assert "\n  bash platform/T4_FastPitch_AMP_1GPU.sh --resume\n" in platform
    assert platform.startswith("Trains FastPitch on 1 GPU of NVIDIA T4 (16GB) in mixed precision")
    settings = {name: default for name, (default, _) in shown_variables(platform).items()}
    assert settings == {"NUM_GPUS": "1", "BS": "64", "GRAD_ACCUMULATION": "4", "AMP": "true"}
    assert "LEARNED_ALIGNMENT=" in platform and "LR_POLICY=" not in platform


def test_all_platform_files_are_built_alike():
    form = re.compile(
        r'# Trains [^\n]+\nsource "\$\(dirname "\$\{BASH_SOURCE\[0\]\}"\)/\.\./scripts/lib\.sh"\n'
        r"MODEL=[\w-]+ exec bash scripts/train\.sh [^\n]+\n"
    )
    assert [path.name for path in PLATFORMS if not form.fullmatch(path.read_text())] == []


def test_the_arguments_of_quickstart_and_of_the_tests_are_those_of_what_they_run(bare: Path):
    assert "`.venv/bin/python -m scripts.demos.quickstart --help` lists them" in ask(
        bare, "scripts/quickstart.sh", "-h"
    )
    assert "`.venv/bin/python -m pytest --help` lists them" in ask(bare, "scripts/test.sh", "-h")


def paste(command: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in the project's folder as a dry run, by a Python that is named py."""
    return run_bash("-c", f"cd '{ROOT}' && {command}", DRY_RUN="1", PYTHON="py")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_examples_of_each_script_run_as_pasted(bare: Path, path: Path):
    for command in examples(ask(bare, f"scripts/{path.name}", "--help")):
        if "sbatch" not in command:
            check_dry_run(command)


def check_dry_run(command: str) -> None:
    done = paste(command)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    assert ".venv/bin/python" not in done.stdout, f"{command}: PYTHON names the interpreter"
    assert "py " in done.stdout or "exists already" in done.stdout, command


def test_the_commands_of_the_documents_run_as_pasted():
    for command in commands():
        script = next((word for word in words_of(command)[1] if word.endswith(".sh")), "")
        if words_of(command)[1][:1] == ["bash"] and "--help" not in command and "..." not in command:
            assert (ROOT / script).is_file(), command
            check_dry_run(command)
