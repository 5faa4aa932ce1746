"""Write the tables of docs/OPTIONS.md and docs/MIGRATING.md whose rows the code declares.

python -m scripts.options_page

All else on the pages is written by hand. ``<!-- made: WHAT COMMAND -->`` and ``<!-- end -->`` stand around a table:
``WHAT`` is a name of `PARTS`, and a command is a module with the words that choose its options.
"""

import argparse
import importlib
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from common.cli import ArgumentParser, run
from common.files import read_text, write_text
from common.options import option_of, words_of_value
from common.registry import available_models, get_model
from scripts.launch import REMOVED, ROOT, Script
from scripts.start import SCRIPTS

PAGES = (ROOT / "docs" / "OPTIONS.md", ROOT / "docs" / "MIGRATING.md")
UNTITLED = ("options", "positional arguments")  # argparse's own names of groups
_MADE = re.compile(r"(<!-- made: (\w+)(?: ([^\n]+))? -->\n).*?(<!-- end -->)", re.DOTALL)


class Option(NamedTuple):
    """An option as the page shows it."""

    names: tuple[str, ...]
    values: str  # what stands for its values, if it says
    default: str
    meaning: str
    group: str


@cache
def parser_of(command: str) -> ArgumentParser:
    """The parser that `--help` after ``command`` describes: a module and the words that choose its options."""
    module, *words = command.split()
    with (
        patch.object(argparse.ArgumentParser, "print_help", autospec=True, side_effect=SystemExit) as print_help,
        patch.object(sys, "argv", [module, *words, "--help"]),
        suppress(SystemExit),
    ):
        importlib.import_module(module).main()
    assert print_help.called, f"{command}: --help shows no options"
    parser: ArgumentParser = print_help.call_args.args[0]
    return parser


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
    values = " ".join([action.metavar] if isinstance(action.metavar, str) else action.metavar or ())
    values = f" {values}" if values and action.option_strings else ""
    return Option(tuple(action.option_strings) or (action.dest.upper(),), values, default, _escape(text), group)


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None or value == [] or value == argparse.SUPPRESS:
        return ""
    return f"`{words_of_value(value)}`".replace(f"{ROOT}/", "")


def _escape(text: str) -> str:
    """Text of a table's cell, in which only backquotes mark anything up."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([|*<])", r"\\\1", part) for part in parts)


def table(titles: str, rows: Iterable[Iterable[str]]) -> str:
    """A table of rows of cells, below titles that ``|`` separates."""
    lines = [titles, "|".join([" --- "] * len(titles.split("|"))).strip(), *(" | ".join(row) for row in rows)]
    return "\n" + "".join(f"| {line} |\n" for line in lines)


def tables(options: Iterable[Option], *, level: int) -> str:
    """A table of options for each group, below a heading where the group has a title."""
    text = ""
    for group, members in groupby(options, key=lambda one: one.group):
        rows = ((_code(one.names) + one.values, one.default, one.meaning) for one in members)
        text += f"\n{'#' * level} {group[:1].upper()}{group[1:]}\n" if group else ""
        text += table("option | default | meaning", rows)
    return text


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def training_part(_: str) -> str:
    """Options of train.py: those that are alike in all models, and the others of each model."""
    by_model = {model: options_of(f"train -m {model}") for model in available_models()}
    shared = set.intersection(*map(set, by_model.values()))
    sections = {"all models": [option for option in options_of("train") if option in shared]}
    sections |= {model: [option for option in own if option not in shared] for model, own in by_model.items()}
    return "".join(f"\n### Options of {title}\n" + tables(own, level=4) for title, own in sections.items())


def variables_of(script: Script) -> dict[str, tuple[str, str, tuple[str, ...]]]:
    """Default, meaning and models (none: all) of the variables of a script, in the order of their declarations."""
    defaults = script.defaults_of("")
    found: dict[str, tuple[str, str, tuple[str, ...]]] = {}
    if script.models:
        found["MODEL"] = (script.models[0], f"one of {', '.join(script.models)}", ())
    of_other = script.trains.declarations() if script.trains else ()
    for one in (*script.declarations(), *(one for one in of_other if one.option.variable in defaults)):
        if (name := one.option.variable) is None:
            continue
        value, choices = defaults.get(name, one.default), one.option.choices or ()
        default = "" if value is None else words_of_value(value)
        meaning = re.sub(r"\s*\[[^\]]*\]$", "", one.option.help)  # the default of an option of a command
        meaning += f": {', '.join(choices)}" if choices and next(iter(choices)) not in meaning else ""
        shown = (default.lower() if isinstance(value, bool) else default, meaning, tuple(one.models))
        default, meaning, models = found.get(name, shown)
        found[name] = (default, meaning, tuple(dict.fromkeys((*models, *one.models))) if models and one.models else ())
    return found


def variables_part(_: str) -> str:
    """A table for each script that reads variables."""
    text = ""
    for name, script in sorted((name, one) for name, one in SCRIPTS.items() if one.variables):
        rows = [
            (f"`{variable}`", default and f"`{default}`", _escape(meaning + f" ({', '.join(models)})" * bool(models)))
            for variable, (default, meaning, models) in variables_of(script).items()
        ]
        text += f"\n### {name}.sh\n" + table("variable | default | meaning", rows)
        text += "\nThe variables of scripts/train.sh apply too.\n" if script.trains else ""
    return text


def published_options(command: str) -> dict[str, str]:
    """Options of the published toolkits, and what replaces them in a command; in train that of all models."""
    found: dict[str, str] = {}
    for one in [f"train -m {model}" for model in available_models()] if command == "train" else [command]:
        found = parser_of(one).published | found
    configs = (get_model(name).config.ModelConfig for name in available_models())
    architecture = {name for config in configs for name in config.__dataclass_fields__}
    return {name: text for name, text in found.items() if name[2:].replace("-", "_") not in architecture}


def published_part(command: str) -> str:
    """A row for each option that another one replaces, and for each reason why some have gone."""
    by_replacement: dict[str, list[str]] = {}
    for name, replacement in published_options(command).items():
        by_replacement.setdefault(replacement, []).append(name)
    return table("published | here", ((_code(names), _replacement(here)) for here, names in by_replacement.items()))


def published_variables_part(_: str) -> str:
    """A row for each variable of the published scripts that is called otherwise here or has gone."""
    found: dict[tuple[str, str], dict[str, None]] = {}  # variable and replacement -> scripts
    for script, one in sorted(SCRIPTS.items()):
        here = {(name, REMOVED[name]) for name in one.removed.split()}
        for _, field, known, *_ in one.declarations():
            here |= {(name, known.variable or option_of(field)) for name in known.published if name[0] != "-"}
        for pair in here:
            found.setdefault(pair, {})[f"{script}.sh"] = None
    rows = ((f"`{name}`", _code(scripts), _replacement(here)) for (name, here), scripts in sorted(found.items()))
    return table("published | scripts | here", rows)


def _replacement(text: str) -> str:
    """A cell on a name that replaces another one, or the reason why that has gone."""
    return text.replace("|", "\\|") if " " in text else f"accepted as `{text}`"


PARTS = {
    "options": lambda command: tables(options_of(command), level=3),
    "training": training_part,
    "variables": variables_part,
    "published": published_part,
    "published_variables": published_variables_part,
}


def page(path: Path) -> str:
    """A page as the code wants it."""
    return _MADE.sub(lambda found: f"{found[1]}{PARTS[found[2]](found[3])}\n{found[4]}", read_text(path))


def main() -> int:
    """Write the pages; tests/test_documents.py fails where one is stale."""
    ArgumentParser(description="Write the tables of options and variables in docs/", prog="options_page").parse_args()
    for path in PAGES:
        write_text(path, page(path))
    return 0


if __name__ == "__main__":
    run(main)
