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
    line = r'MODEL=[\w-]+ source "\$\(dirname "\$\{BASH_SOURCE\[0\]\}"\)/\.\./scripts/train\.sh" [^\n]+ "\$@"\n'
    form = re.compile(rf"#!/usr/bin/env bash\n# Trains [^\n]+\n{line}")
    assert [path.name for path in PLATFORMS if not form.fullmatch(path.read_text())] == []


PASTED = {example for path in SCRIPTS for example in examples(path) if "sbatch" not in example}
for command in commands():
    if words_of(command)[1][:1] == ["bash"] and "--help" not in command and "..." not in command:
        PASTED.add(command)


@pytest.mark.parametrize("command", sorted(PASTED))
def test_what_a_document_or_help_shows_has_commands_to_run_whose_options_exist(command: str):
    done = paste(command, DRY_RUN="1")
    assert done.returncode == 0, done.stderr
    assert any(
        words in done.stdout
        for words in (sys.executable, "speaking/bin/python", "exists already", "docker", "nothing to download")
    )
    for words in map(shlex.split, done.stdout.splitlines()):
        if "train.py" in words:
            training_options(words)
        elif words[0] == sys.executable and not {"pytest", "ruff", "mypy", "-c"}.intersection(words):
            check_options(words)


@pytest.mark.parametrize("name", ["train", "prepare_dataset", "inference_benchmark_jasper"])
def test_bash_makes_of_an_example_what_this_process_does(name: str):
    command = examples(ROOT / f"scripts/{name}.sh")[-1]
    here, there = (paste(line, DRY_RUN="1") for line in (command, f"true;{command}"))
    assert here.args[0] != "bash" and there.args[0] == "bash"
    assert (here.returncode, here.stdout, here.stderr) == (there.returncode, there.stdout, there.stderr)
