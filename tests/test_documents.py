"""README.md and docs/ say what the code does: commands, options, variables, messages, paths and links."""

import argparse
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from seed_commands import place_of_program
from shell import ROOT
from training_setup import parser_of

from scripts import options_page
from speech_toolkit.__main__ import COMMANDS, parser_of as command_parser

OPTIONS = "docs/OPTIONS.md"  # is generated
DOCUMENTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))
}


def bash_blocks(text: str) -> list[str]:
    """The fenced blocks of shell commands, without the indentation of a list they are in."""
    found = re.findall(r"^( *)```bash\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    return ["".join(line[len(indent) :] for line in block.splitlines(True)) for indent, block in found]


def commands() -> list[str]:
    """Every command line of the documents, continued lines joined, with those that are inline code."""
    lines = []
    for name, text in DOCUMENTS.items():
        for block in bash_blocks(text):
            lines += block.replace("\\\n", " ").splitlines()
        if name != OPTIONS:
            inline = r"`((?:\w+=(?:\"[^\"`]*\"|\S+) )*(?:bash|\.venv/bin/python) [^`]*)`"
            lines += re.findall(inline + r"(?![^.\n]*\(command of commit)", text)  # which is no longer there
    return sorted({" ".join(shlex.split(line, comments=True)) and line.strip() for line in lines if line.strip()})


@cache
def option_names(program: str) -> set[str]:
    shown = (action for action in parser_of(program)._actions if action.help != argparse.SUPPRESS)
    return {name for action in shown for name in action.option_strings}


def check_options(words: list[str]) -> None:
    """Check that the program of a command has the options that follow it."""
    if words[0] == "speech" or "speech_toolkit" in words:
        name, *following = words[1 + words.index("speech" if words[0] == "speech" else "speech_toolkit") :]
        if name in COMMANDS:
            names = command_parser(name)._option_string_actions
            assert {word for word in following if word.startswith("--")} <= {*names, "--help"}, words
        else:
            assert name == "--help"
        return
    place = place_of_program(words)
    program, following = words[place].removesuffix(".py"), words[place + 1 :]
    options = {word.partition("=")[0].replace("_", "-") for word in following if re.match(r"--?[a-z]", word)}
    model = "".join(f" -m {following[i + 1]}" for i, word in enumerate(following) if word in ("-m", "--model"))
    if program == "train":
        program += model
    elif program == "inference" and "--jasper" in options:
        program += " --jasper x"
    elif program == "extract_mels" and "--checkpoint" in options:
        program += " --checkpoint x"
    known = option_names(program) if options else set()
    if program == "scripts.datasets.describe_mels":  # which ignores those of the extraction
        known = known | option_names("extract_mels")
    if program == "scripts.benchmarks.updates":  # which passes others on
        return
    assert options - {"--help", "--version"} <= known, words


@pytest.mark.parametrize("path", options_page.PAGES, ids=lambda path: path.stem)
def test_tables_of_options_are_fresh_and_written_again(path: Path, tmp_path: Path, monkeypatch):
    fresh, stale = path.read_text(encoding="utf-8"), tmp_path / path.name
    stale.write_text(re.sub(r"^\| `.*\n", "", fresh, count=1, flags=re.MULTILINE), encoding="utf-8")
    monkeypatch.setattr(options_page, "PAGES", [stale])
    options_page.main()
    assert stale.read_text(encoding="utf-8") == fresh, f"{path.name} is stale: run python -m scripts.options_page"
