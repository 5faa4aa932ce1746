"""Every script answers --help, and what it and the documents show can be pasted and runs."""

import shlex
import sys
from pathlib import Path

import pytest
from shell import ROOT, SCRIPTS as STARTED, paste, read_shell_file, run_bash, training_options, words_of
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


def test_every_variable_is_in_its_scripts_help():
    for script in STARTED.values():
        for model in script.models or ("",):
            text = script.parser(model).format_help()
            assert [
                known.variable for _, known, _ in script.declarations(model) if f" {known.variable}=" not in text
            ] == []


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
        for words in (sys.executable, "speaking/bin/python", "exists already", "docker", "nothing to download")
    )
    for words in map(shlex.split, done.stdout.splitlines()):
        if "train.py" in words:
            training_options(words)
        elif words[0] == sys.executable and not {"pytest", "ruff", "mypy", "-c"}.intersection(words):
            check_options(words)
