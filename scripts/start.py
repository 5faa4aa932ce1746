"""Starts a script, or prints its help: the comment that it opens with, and the variables that its module declares.

python -m scripts.start train --resume
python -m scripts.start --help scripts/train.sh
"""

import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from common.cli import run
from common.options import words_of_value
from scripts import benchmarking, corpora, speaking, train, training
from scripts.launch import ROOT, Script

SCRIPTS = train.SCRIPTS | speaking.SCRIPTS | benchmarking.SCRIPTS | training.SCRIPTS | corpora.SCRIPTS
_COMMAND = re.compile(r"^((?:[A-Z_]+=\S+ )*)run_script (\w+)(.*)", re.MULTILINE)


@dataclass(frozen=True)
class ShellFile:
    """A file that users start: its comment, the script that it runs, and the variables and arguments that it gives."""

    comment: str
    runs: str | None
    fixed: dict[str, str]
    words: list[str]  # those with NAME= are defaults of variables


def read_shell_file(path: Path) -> ShellFile:
    """Read a file of scripts/ or platform/."""
    text = path.read_text(encoding="utf-8")
    lines = text.removeprefix("#!/usr/bin/env bash\n").splitlines()
    count = next((number for number, line in enumerate(lines) if not re.match("#( |$)", line)), len(lines))
    comment = "\n".join(line[2:] for line in lines[:count])
    found = _COMMAND.search(text)
    if found is None:
        return ShellFile(comment, None, {}, [])
    fixed, name, words = found.groups()
    variables = dict(word.split("=", 1) for word in fixed.split())
    return ShellFile(comment, name, variables, [word for word in shlex.split(words) if word != "$@"])


class Variable(NamedTuple):
    """A variable of a script, as help and docs/OPTIONS.md show it."""

    name: str
    default: str
    meaning: str
    models: tuple[str, ...]  # none: all


def variables_of(script: Script, model: str = "") -> list[Variable]:
    """The variables of a script, each once, in the order of their declarations; defaults are those of a ``model``."""
    defaults = script.defaults_of(model)
    found: dict[str, Variable] = {}
    if script.models:
        found["MODEL"] = Variable("MODEL", script.models[0], f"one of {', '.join(script.models)}", ())
    of_other = script.trains.declarations() if script.trains else ()
    for one in (*script.declarations(), *(one for one in of_other if one.option.variable in defaults)):
        name = one.option.variable
        if name is not None:
            value = defaults.get(name, one.default)
            default = "" if value is None else words_of_value(value)
            default = default.lower() if isinstance(value, bool) else default
            meaning = _meaning(one.option.help, one.option.choices)
            earlier = found.setdefault(name, Variable(name, default, meaning, tuple(one.models)))
            both = dict.fromkeys((*earlier.models, *one.models)) if earlier.models and one.models else ()
            found[name] = earlier._replace(models=tuple(both))
    return list(found.values())


def _meaning(text: str, choices: Any) -> str:
    text = re.sub(r"\s*\[[^\]]*\]$", "", text)  # the default of an option of a command
    return f"{text}: {', '.join(choices)}" if choices and choices[0] not in text else text


def help_of(path: Path) -> str:
    """What ``--help`` after a script prints."""
    file = read_shell_file(path)
    text, model = file.comment, file.fixed.get("MODEL", "")
    if path.parent.name == "platform":
        name = f"platform/{path.name}"
        text += f"\n  bash {name} --resume\n  EPOCHS=10 OUTPUT_DIR=output/trial bash {name}  # a trial"
    defaults = dict(word.split("=", 1) for word in file.words if "=" in word)
    script = SCRIPTS[file.runs] if file.runs else None
    if script is not None and script.variables:
        text += "\n\nVariables, set in front of the command as NAME=value:"
        for name, default, meaning, models in variables_of(script, model):
            if name in file.fixed or (model and models and model not in models):
                continue
            only = f" ({', '.join(models)})" if models and not model else ""
            setting = f"{name}={defaults.get(name, default)}"
            text += f"\n  {setting}\n  {'':32}" if len(setting) > 32 else f"\n  {setting:32}"
            text += f"  {meaning}{only}"
        if script.trains:
            text += "\n\nThe variables of scripts/train.sh apply too; `bash scripts/train.sh --help` lists them."
    text += "\n\nDRY_RUN=1 prints the commands instead of running them; PYTHON=/path/to/python names the Python."
    return text


def main(argv: Sequence[str] | None = None) -> int:
    """Start the script that the first word names, or print the help of the file that follows ``--help``."""
    first, *words = sys.argv[1:] if argv is None else argv
    if first == "--help":
        print(help_of(ROOT / words[0]))
    else:
        SCRIPTS[first].start(dict(os.environ), words)
    return 0


if __name__ == "__main__":
    run(main)
