"""Every example in the help of every script: its commands are parsed by the programs that would run them."""

import argparse
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from seed_commands import Project
from shell import ROOT

from common.errors import InputError, OptionError

SCRIPTS = sorted({*ROOT.glob("scripts/**/*.sh")} - {*ROOT.glob("scripts/lib/*"), ROOT / "scripts/lib.sh"})
OTHERS = ("docker", "mkdir", "bash", "env")  # programs of the system that scripts run


class ParsedError(Exception):
    """Ends a program that has read its command line."""


def examples(script: Path) -> list[str]:
    """The commands of a script's help, continued lines joined."""
    words = [f"source '{ROOT}/scripts/lib/help.sh'; print_help '{script}'"]
    answer = subprocess.run(["bash", "-c", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    head = answer.partition("\n\n")[0].replace("\\\n", " ")
    return [line.strip() for line in head.splitlines() if line.startswith("  ")]


def parse(words: list[str], project: Project, patch: pytest.MonkeyPatch) -> None:
    """Let the program of a command line read it, and nothing more."""
    start = words.index("train.py") if "train.py" in words else words.index("-m") + 1 if words[1] == "-m" else 1
    name, *options = words[start:]
    if not (ROOT / f"{name.removesuffix('.py').replace('.', '/')}.py").is_file():
        return  # not ours: pytest and the linters
    module = importlib.import_module(name.removesuffix(".py"))
    read = argparse.ArgumentParser.parse_args

    def read_and_stop(parser: argparse.ArgumentParser, *given, **keywords):
        read(parser, *given, **keywords)
        raise ParsedError

    with patch.context() as within:
        within.chdir(project.folder)
        within.setattr(sys, "argv", [name, *options])
        within.setattr(argparse.ArgumentParser, "parse_args", read_and_stop)
        try:
            if hasattr(module, "parse_args"):
                module.parse_args(options)
            else:
                module.main()
                assert options == [], "it has read none of them"
        except ParsedError:
            pass
        except InputError as error:  # of a file that is not there yet
            assert not isinstance(error, OptionError), error


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project's folder without data and checkpoints."""
    return Project(tmp_path_factory.mktemp("project"))


@pytest.mark.parametrize(
    "script", SCRIPTS, ids=lambda path: path.relative_to(ROOT / "scripts").with_suffix("").as_posix()
)
def test_the_commands_of_each_example_can_be_parsed(script: Path, project: Project, monkeypatch: pytest.MonkeyPatch):
    for example in examples(script):
        if "sbatch" in example:
            continue
        for words in project.dry_run(example):
            if words[0] == "py":
                parse(words, project, monkeypatch)
            else:
                assert words[0] in OTHERS or len(words) == 1, f"{example}: {words}"
