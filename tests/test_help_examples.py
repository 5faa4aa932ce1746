"""Every example in the help of every script is parsed by the programs that would run it."""

import argparse
import importlib
import sys
from pathlib import Path

import pytest
from seed_commands import PROGRAMS, Project
from shell import ROOT

from common.errors import InputError, OptionError
from scripts.benchmarks import random_models
from scripts.start import read_shell_file

SCRIPTS = sorted({*ROOT.glob("scripts/**/*.sh")} - {*ROOT.glob("scripts/lib/*"), ROOT / "scripts/lib.sh"})
OTHERS = ("docker", "mkdir", "bash", "env")  # programs of the system that scripts run


class ParsedError(Exception):
    """Ends a program that has read its command line."""


def examples(script: Path) -> list[str]:
    """The commands of a script's help, continued lines joined."""
    head = read_shell_file(script).comment.replace("\\\n", " ")
    return [line.strip() for line in head.splitlines() if line.startswith("  ")]


def parse(words: list[str], project: Project, patch: pytest.MonkeyPatch) -> None:
    """Let the program of a command line read it, and nothing more."""
    start = words.index("train.py") if "train.py" in words else words.index("-m") + 1 if words[1] == "-m" else 1
    name, *options = words[start:]
    if not (ROOT / f"{name.removesuffix('.py').replace('.', '/')}.py").is_file():
        return  # not ours: pytest and the linters
    module = importlib.import_module(name.removesuffix(".py"))
    read = argparse.ArgumentParser.parse_known_args

    def read_and_stop(parser: argparse.ArgumentParser, *given, **keywords):
        found = read(parser, *given, **keywords)
        if parser.add_help and found[1] == []:  # otherwise it peeks at which model is meant, and the next parser reads
            raise ParsedError
        return found

    with patch.context() as within:
        within.chdir(project.folder)
        within.setattr(sys, "argv", [name, *options])
        within.setattr(argparse.ArgumentParser, "parse_known_args", read_and_stop)
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
    folder = tmp_path_factory.mktemp("project")
    (folder / "output").mkdir()  # not that of who runs the tests
    return Project(folder)


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


def test_the_example_of_jasper_on_a_laptop_trains_on_all_of_its_recordings(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(PROGRAMS, "scripts.benchmarks.random_models", lambda: random_models.main() or 0)
    (example,) = [line for line in examples(ROOT / "scripts/train_benchmark_jasper.sh") if line.endswith("# a laptop")]
    making, training, *_ = project.dry_run(example)
    project.python(making)
    printed = project.python(training, "--epochs", "1", "--batch-size", "16", "--validation-interval", "9")
    assert "| iter   2/  2 |" in printed, "32 recordings, of which none is left out"
