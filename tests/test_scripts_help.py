"""Every script answers --help, and what it and the documents show can be pasted and runs."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from shell import ROOT, paste, read_shell_file, run_bash, training_options, words_of
from test_documents import check_options, commands

from scripts.options_page import variables_of
from scripts.start import SCRIPTS as STARTED

SCRIPTS = sorted({*ROOT.glob("scripts/**/*.sh")} - {ROOT / "scripts/lib.sh"})
PLATFORMS = sorted(ROOT.glob("platform/*.sh"))


def examples(path: Path) -> list[str]:
    """The commands of a script's help, continued lines joined."""
    lines = read_shell_file(path).comment.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.startswith("  ")]


@pytest.mark.parametrize("path", [*SCRIPTS, PLATFORMS[0]], ids=lambda path: path.stem)
def test_each_script_says_without_python_what_it_does_with_examples_and_all_its_variables(path: Path):
    file, answer = read_shell_file(path), run_bash(path, "--resume", "-h", PYTHON="").stdout
    assert answer.startswith(f"{file.comment}\n\n")
    assert re.match(r"[A-Z].{20,}?[.](\n|$)", file.comment, re.DOTALL), "a sentence comes first"
    assert path in PLATFORMS or len([line for line in examples(path) if path.name in line]) >= 2
    shown = re.findall(r"^  ([A-Z][A-Z_0-9]*)=(\S*) +(\S.*)$", answer.partition("\nVariables, set")[2], re.MULTILINE)
    assert [name for name, _, _ in shown] == [*(variables_of(STARTED[file.runs]) if file.runs else ())]
    assert "DRY_RUN=1" in answer and "PYTHON=" in answer
    if file.runs == "train":
        assert ("SEGMENT_LENGTH", "8000", "samples of a training segment (WaveGlow)") in shown


def test_all_platform_files_are_built_alike():
    form = re.compile(
        r'# Trains [^\n]+\nsource "\$\(dirname "\$\{BASH_SOURCE\[0\]\}"\)/\.\./scripts/lib\.sh"\n'
        r"MODEL=[\w-]+ run_script train [^\n]+\n"
    )
    assert [path.name for path in PLATFORMS if not form.fullmatch(path.read_text())] == []


def check_dry_run(command: str) -> None:
    """Check that a command line that is pasted in the project's folder has commands to run, which train.py takes."""
    done = paste(command, DRY_RUN="1")
    assert done.returncode == 0, f"{command}: {done.stderr}"
    shown = (sys.executable, "exists already", "docker", "nothing to download")
    assert any(words in done.stdout for words in shown), command
    for words in map(shlex.split, done.stdout.splitlines()):
        if "train.py" in words:
            training_options(words)
        elif words[0] == sys.executable and not {"pytest", "ruff", "mypy", "-c"}.intersection(words):
            check_options(words)


def starts_a_script(command: str) -> bool:
    """Whether a command of a document starts one of our scripts, with all of its words given."""
    return words_of(command)[1][:1] == ["bash"] and "--help" not in command and "..." not in command


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_examples_of_each_script_run_as_pasted(path: Path):
    for command in examples(path):
        if "sbatch" not in command:
            check_dry_run(command)


@pytest.mark.parametrize("command", sorted({command for command in commands() if starts_a_script(command)}))
def test_a_command_of_the_documents_runs_as_pasted(command: str):
    check_dry_run(command)


@pytest.mark.parametrize("name", ["train", "prepare_dataset", "inference_benchmark_jasper"])
def test_bash_makes_of_an_example_what_this_process_does(name: str):
    command = examples(ROOT / f"scripts/{name}.sh")[-1]
    here, there = (paste(line, DRY_RUN="1") for line in (command, f"true;{command}"))
    assert here.args[0] != "bash" and there.args[0] == "bash"
    assert (here.returncode, here.stdout, here.stderr) == (there.returncode, there.stdout, there.stderr)
