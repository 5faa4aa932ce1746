"""Every script answers --help, and what it and the documents show can be pasted and runs."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from shell import ROOT, run_bash, training_options
from test_documents import check_options, commands, words_of

from scripts.start import SCRIPTS as STARTED, help_of, read_shell_file, variables_of

SCRIPTS = sorted({*ROOT.glob("scripts/**/*.sh")} - {ROOT / "scripts/lib.sh"})
PLATFORMS = sorted(ROOT.glob("platform/*.sh"))
ONE_OF_EACH_MODEL = [next(path for path in PLATFORMS if f"_{model}_" in path.name) for model in ("FastPitch", "Jasper")]


def examples(path: Path) -> list[str]:
    """The commands of a script's help, continued lines joined."""
    lines = read_shell_file(path).comment.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.startswith("  ")]


@pytest.mark.parametrize("path", [*SCRIPTS, *ONE_OF_EACH_MODEL], ids=lambda path: path.stem)
def test_each_script_says_what_it_does_with_examples_and_all_its_variables(path: Path):
    answer, file = help_of(path), read_shell_file(path)
    assert re.match(r"[A-Z].{20,}?[.]\n", answer, re.DOTALL), "a sentence comes first"
    assert len(re.findall(rf"^  .*{path.name}", answer, re.MULTILINE)) >= 2
    shown = re.findall(r"^  ([A-Z][A-Z_0-9]*)=", answer.partition("\nVariables, set")[2], re.MULTILINE)
    if file.runs and "MODEL" not in file.fixed:
        wanted = [one.name for one in variables_of(STARTED[file.runs])]
        assert [name for name in wanted if name not in file.fixed] == shown
    assert "DRY_RUN=1" in answer and "PYTHON=" in answer


def test_help_is_that_of_the_python_that_is_there_and_else_the_comment(tmp_path: Path):
    answer = run_bash(ROOT / "scripts/train_waveglow.sh", "--resume", "-h")
    assert answer.returncode == 0 and answer.stdout == help_of(ROOT / "scripts/train_waveglow.sh") + "\n"
    assert "SEGMENT_LENGTH=8000" in answer.stdout and "LR_POLICY" not in answer.stdout
    for name in ("scripts", "platform"):
        (tmp_path / name).symlink_to(ROOT / name)
    bare = run_bash(tmp_path / "scripts/train.sh", "--help", PYTHON="")
    assert bare.stdout.startswith("Trains MODEL (") and bare.stdout.endswith("docs/OPTIONS.md lists the variables.\n")
    assert not (tmp_path / ".venv").exists()


def test_all_platform_files_are_built_alike():
    form = re.compile(
        r'# Trains [^\n]+\nsource "\$\(dirname "\$\{BASH_SOURCE\[0\]\}"\)/\.\./scripts/lib\.sh"\n'
        r"MODEL=[\w-]+ run_script train [^\n]+\n"
    )
    assert [path.name for path in PLATFORMS if not form.fullmatch(path.read_text())] == []


def check_dry_run(command: str) -> None:
    """Check that a command line that is pasted in the project's folder has commands to run, which train.py takes."""
    done = run_bash("-c", f"cd '{ROOT}' && {command}", DRY_RUN="1", PYTHON=sys.executable)
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
