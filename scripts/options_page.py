"""Write docs/OPTIONS.md: every option of the commands and every variable of the scripts, as the code has them.

python -m scripts.options_page
"""

import argparse
import importlib
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from common.cli import ArgumentParser, run
from common.errors import InputError
from common.files import write_text
from common.registry import available_models
from scripts.start import all_scripts, variables_of

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "OPTIONS.md"
UNTITLED = ("options", "positional arguments")  # argparse's own names of groups
INTRODUCTION = """# Options

Written by `python -m scripts.options_page`; do not edit. Hyphens and underscores in options are alike; options cannot
be abbreviated, and unknown ones are refused. Every command has `--help` and `--version`.
"""


@cache
def parser_of(command: str) -> argparse.ArgumentParser:
    """The parser that `--help` after ``command`` describes: a module and the words that choose its options."""
    module, *words = command.split()
    with (
        patch.object(argparse.ArgumentParser, "print_help", autospec=True, side_effect=SystemExit) as print_help,
        patch.object(sys, "argv", [module, *words, "--help"]),
        suppress(SystemExit),
    ):
        importlib.import_module(module).main()
    assert print_help.called, f"{command}: --help shows no options"
    return print_help.call_args.args[0]


def module_of(script: str) -> str:
    """The module that a script of ``scripts/`` gives its arguments to."""
    found = re.search(r"-m (scripts\.[\w.]+)", (ROOT / "scripts" / script).read_text(encoding="utf-8"))
    if found is None:
        raise InputError(f"scripts/{script}: runs no module of scripts")
    return found[1]


class Option(NamedTuple):
    """An option as the page shows it."""

    names: tuple[str, ...]
    values: str  # what stands for its values, if it says
    default: str
    meaning: str
    group: str


def options_of(command: str) -> list[Option]:
    """All options of a command but ``--help`` and ``--version``, in the order of its help."""
    parser = parser_of(command)
    return [
        _option(action, parser, "" if group.title in UNTITLED else group.title or "")
        for group in parser._action_groups
        for action in group._group_actions
        if action.help != argparse.SUPPRESS and action.dest not in ("help", "version")
    ]


def _option(action: argparse.Action, parser: argparse.ArgumentParser, group: str) -> Option:
    text = (action.help or "").removesuffix(" (default: %(default)s)")  # which Python 3.10 adds to switches
    text %= {**vars(action), "prog": parser.prog}
    default = "required" if action.required else _default(action.default)
    if not default and (bracketed := re.search(r"\s*\[([^\]]*)\]$", text)):  # the default of what a parser leaves open
        text, default = text[: bracketed.start()], "" if bracketed[1] == "None" else f"`{bracketed[1]}`"
    if action.choices:
        text += f"{': ' if text else ''}{', '.join(f'`{choice}`' for choice in action.choices)}"
    if not action.option_strings:
        return Option((action.dest.upper(),), "", default, _escape(text), group)
    values = " ".join([action.metavar] if isinstance(action.metavar, str) else action.metavar or ())
    return Option(tuple(action.option_strings), values and f" {values}", default, _escape(text), group)


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None or value == [] or value == argparse.SUPPRESS:
        return ""
    if isinstance(value, Path) and value.is_relative_to(ROOT):
        value = value.relative_to(ROOT)
    words = value if isinstance(value, list | tuple) else [value]
    return f"`{' '.join(','.join(map(str, word)) if isinstance(word, tuple) else str(word) for word in words)}`"


def _escape(text: str) -> str:
    """Text of a table's cell, in which only backquotes mark anything up."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([|*<])", r"\\\1", part) for part in parts)


def tables(options: Iterable[Option], *, level: int) -> str:
    """A table for each group, below a heading where the group has a title."""
    by_group: dict[str, str] = {}
    for names, values, default, meaning, group in options:
        row = f"| {', '.join(f'`{name}`' for name in names)}{values} | {default} | {meaning} |\n"
        by_group[group] = by_group.get(group, "") + row
    text = ""
    for group, rows in by_group.items():
        text += f"\n{'#' * level} {group[:1].upper()}{group[1:]}\n" if group else ""
        text += f"\n| option | default | meaning |\n| --- | --- | --- |\n{rows}"
    return text


def training_section() -> str:
    """Options of train.py: those of all models, defaults that differ, and those that only some models have."""
    everyone = tuple(available_models())
    alike: dict[tuple[tuple[str, ...], str], dict[str, Option]] = {}  # one option of several models, by model
    for model in everyone:
        for option in options_of(f"train -m {model}"):
            alike.setdefault((option.names, option.meaning), {})[model] = option
    sections: dict[tuple[str, ...], list[Option]] = {}
    differing = ""
    for by_model in alike.values():
        option = next(iter(by_model.values()))
        if {own.default for own in by_model.values()} != {option.default}:
            defaults = [by_model[model].default if model in by_model else "" for model in everyone]
            differing += f"| `{max(option.names, key=len)}` | {' | '.join(defaults)} |\n"
            option = option._replace(default="by model")
        if option.group in (*by_model, *(re.sub(r"(\d)", r" \1", model) for model in by_model)):
            option = option._replace(group="")  # the section's title says it
        sections.setdefault(tuple(by_model), []).append(option)
    text = "\n## train.py\n\n`train.py --model MODEL`; the scripts that call it are in [TRAINING.md](TRAINING.md).\n"
    for models in sorted(sections, key=lambda models: (-len(models), [everyone.index(model) for model in models])):
        title = "all models" if models == everyone else " and ".join(models)
        text += f"\n### Options of {title}\n" + tables(sections[models], level=4)
        if models == everyone:
            head = f"| option | {' | '.join(everyone)} |\n| --- |{' --- |' * len(everyone)}\n"
            text += f"\n#### Defaults by model\n\n{head}{differing}"
    return text


def variables_section() -> str:
    """A table for each script that reads variables."""
    text = """
## Variables of the scripts

Set in front of the command: `NUM_GPUS=1 bash scripts/train.sh`. Where no default is given, it is empty or depends on
other variables. `--help` after a script shows its own. Each takes `DRY_RUN=1`, which prints the commands instead of
running them, and `PYTHON`, an interpreter to use instead of that in `.venv`; `VENV_PYTHON` is the one to make `.venv`
with.
"""
    for name, script in sorted(all_scripts().items()):
        text += f"\n### {name}.sh\n\n| variable | default | meaning |\n| --- | --- | --- |\n"
        for variable, default, meaning, models in variables_of(script):
            only = f" ({', '.join(models)})" if models else ""
            text += f"| `{variable}` | {default and f'`{default}`'} | {_escape(meaning + only)} |\n"
        text += "\nThe variables of scripts/train.sh apply too.\n" if script.trains else ""
    return text


def page() -> str:
    """The page as the code wants it."""
    text = INTRODUCTION + training_section()
    recognizers = [(model, f"--{model.lower()}") for model in available_models("recognizer")]
    for title, command, about in (
        ("inference.py", "inference", "Text to speech, and mel-spectrograms to sound."),
        *(
            (f"inference.py {one}", f"inference {one} CHECKPOINT", f"Speech to text with {model}.")
            for model, one in recognizers
        ),
        ("serve.py", "serve", "A voice, and a recognizer, over HTTP."),
        ("extract_mels.py", "extract_mels", "Features of a corpus, and reports on it."),
        (
            "extract_mels.py --checkpoint",
            "extract_mels --checkpoint CHECKPOINT",
            "Mel-spectrograms that a generator makes teacher-forced, to fine-tune a vocoder on.",
        ),
        ("scripts/evaluate_voice.sh", "scripts.evaluate_voice", "Quality and speed of a voice."),
        ("scripts/quickstart.sh", module_of("quickstart.sh"), "A first voice in minutes."),
    ):
        text += f"\n## {title}\n\n{about}\n" + tables(options_of(command), level=3)
    return text + variables_section()


def main() -> int:
    """Write the page; tests/test_documents.py fails where it is stale."""
    ArgumentParser(description="Write docs/OPTIONS.md from the parsers", prog="options_page").parse_args()
    write_text(PAGE, page())
    return 0


if __name__ == "__main__":
    run(main)
