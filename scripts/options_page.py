"""Write the tables of docs/OPTIONS.md and docs/MIGRATING.md whose rows the code declares.

``<!-- made: WHAT COMMAND -->`` and ``<!-- end -->`` stand around a table: ``WHAT`` is a name of `PARTS`, and a command
is a key of `PARSERS`. All else on the pages is written by hand.
"""

import argparse
import re
from collections.abc import Iterable
from importlib import import_module
from itertools import groupby
from typing import Any, NamedTuple

from common.cli import ArgumentParser, run
from common.files import read_lines, read_text, write_text
from common.options import option_of, options_of as declared_in, words_of_value
from common.registry import available_models, get_model
from scripts.launch import ROOT, load_scripts

PAGES = (ROOT / "docs" / "OPTIONS.md", ROOT / "docs" / "MIGRATING.md")
UNTITLED = ("options", "positional arguments")  # argparse's own names of groups
_MADE = re.compile(r"(<!-- made: (\w+)(?: ([^\n]+))? -->\n).*?(<!-- end -->)", re.DOTALL)
PARSERS = {  # what a page calls a command -> module and function of its parser
    "train": ("train", "build_parser"),
    "inference": ("inference", "build_parser"),
    "inference --jasper CHECKPOINT": ("inference", "build_recognition_parser"),
    "serve": ("serve", "build_parser"),
    "extract_mels": ("extract_mels", "build_parser"),
    "extract_mels --checkpoint CHECKPOINT": ("extract_mels", "teacher_forcing_parser"),
    "scripts.import_recordings": ("scripts.import_recordings", "build_parser"),
    "scripts.evaluate_voice": ("scripts.evaluate_voice", "build_parser"),
    "scripts.demos.quickstart": ("scripts.demos.quickstart", "build_parser"),
}


def parser_of(command: str, *words: str) -> ArgumentParser:
    """The parser of a command; of train that of a model, or of the first."""
    module, function = PARSERS[command]
    return getattr(import_module(module), function)(*words)


class Option(NamedTuple):
    """An option as the page shows it."""

    names: tuple[str, ...]
    values: str  # placeholder of its values
    variable: str
    default: str
    meaning: str
    group: str


def options_of(parser: argparse.ArgumentParser) -> list[Option]:
    """All options of a parser but ``--help`` and ``--version``, in the order of its help."""
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
    if not default and (bracketed := re.search(r"\s*\[([^\]]*)\]$", text)):  # of options without a default in argparse
        text, default = text[: bracketed.start()], "" if bracketed[1] == "None" else f"`{bracketed[1]}`"
    if action.choices:
        text += f"{': ' if text else ''}{', '.join(f'`{choice}`' for choice in action.choices)}"
    values = " ".join([action.metavar] if isinstance(action.metavar, str) else action.metavar or ())
    values = f" {values}" if values and action.option_strings else ""
    variable = getattr(getattr(action, "declared", None), "variable", None)
    names = tuple(action.option_strings) or (action.dest.upper(),)
    return Option(names, values, f"`{variable}`" if variable else "", default, _escape(text), group)


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
        rows = ((_code(one.names) + one.values, one.variable, one.default, one.meaning) for one in members)
        text += f"\n{'#' * level} {group[:1].upper()}{group[1:]}\n" if group else ""
        text += table("option | variable | default | meaning", rows)
    return text


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def training_part(_: str) -> str:
    """Options of train.py: those that all models share, and the others of each model."""
    by_model = {model: options_of(parser_of("train", model)) for model in available_models()}
    shared = set.intersection(*map(set, by_model.values()))
    sections = {"all models": [option for option in options_of(parser_of("train")) if option in shared]}
    sections |= {model: [option for option in own if option not in shared] for model, own in by_model.items()}
    return "".join(f"\n### Options of {title}\n" + tables(own, level=4) for title, own in sections.items())


def settings_part(_: str) -> str:
    """A row for each setting of the scripts themselves, in the order of their declarations."""
    found: dict[tuple[str, str, str], list[str]] = {}  # variable, option and meaning -> scripts
    for name, script in sorted(load_scripts().items()):
        for field, _, known in declared_in(script.own):
            if known.variable:
                choices = f": {', '.join(known.choices)}" if known.choices else ""
                meaning = _escape(known.help + choices)
                found.setdefault((f"`{known.variable}`", f"`{option_of(field)}`", meaning), []).append(f"{name}.sh")
    rows = ((variable, option, _code(names), meaning) for (variable, option, meaning), names in found.items())
    return table("variable | option | scripts | meaning", rows)


def published_options(command: str) -> dict[str, str]:
    """Options of the published toolkits, and what replaces them in a command; in train that of all models."""
    found: dict[str, str] = {}
    for words in [(model,) for model in available_models()] if command == "train" else [()]:
        found = parser_of(command, *words).published | found
    configs = (get_model(name).config.ModelConfig for name in available_models())
    architecture = {name for config in configs for name in config.__dataclass_fields__}
    return {name: text for name, text in found.items() if name[2:].replace("-", "_") not in architecture}


def published_part(command: str) -> str:
    """A row for each replacement of published options, and for each reason why some were removed."""
    by_replacement: dict[str, list[str]] = {}
    for name, replacement in published_options(command).items():
        by_replacement.setdefault(replacement, []).append(name)
    return table("published | here", ((_code(names), _replacement(here)) for here, names in by_replacement.items()))


def published_variables_part(_: str) -> str:
    """A row for each variable of the published scripts that has another name here or was removed."""
    found: dict[tuple[str, str], dict[str, None]] = {}  # variable and replacement -> scripts
    for name, script in sorted(load_scripts().items()):
        for _, known, _ in (one for model in script.models or ("",) for one in script.declarations(model)):
            for other in known.published if known.variable else ():
                if not other.startswith("-"):
                    found.setdefault((other, str(known.variable)), {})[f"{name}.sh"] = None
    for variable, places, reason in (line.split("\t") for line in read_lines(ROOT / "scripts/removed_variables.tsv")):
        found[variable, reason] = dict.fromkeys(f"{place.partition('/')[0]}.sh" for place in places.split())
    rows = ((f"`{name}`", _code(places), _replacement(here)) for (name, here), places in sorted(found.items()))
    return table("published | scripts | here", rows).replace("`all.sh`", "all")


def _replacement(text: str) -> str:
    """A cell with the name that replaces another one, or the reason why it was removed."""
    return text.replace("|", "\\|") if " " in text else f"accepted as `{text}`"


PARTS = {
    "options": lambda command: tables(options_of(parser_of(command)), level=3),
    "training": training_part,
    "settings": settings_part,
    "published": published_part,
    "published_variables": published_variables_part,
}


def main() -> None:
    """Write the pages; a test fails where one is stale."""
    for path in PAGES:
        text = _MADE.sub(lambda found: f"{found[1]}{PARTS[found[2]](found[3])}\n{found[4]}", read_text(path))
        write_text(path, text)


if __name__ == "__main__":
    run(main)
