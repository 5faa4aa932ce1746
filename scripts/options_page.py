"""Writes the tables of docs/OPTIONS.md and docs/MIGRATING.md from the declared options.

``<!-- made: PART -->`` and ``<!-- end -->`` enclose a part, which a function of `PARTS` writes. Everything else on the
pages is written by hand.
"""

import argparse
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pkgutil import resolve_name
from typing import Any

from common.checkpoints.command_line import architecture_answers
from common.cli import ArgumentParser, run
from common.files import read_text, write_text
from common.options import option_of, options_of, variables_of, words_of_value
from common.registry import available_models, get_model
from scripts.launch import ROOT, load_scripts, removed_variables

PAGES = (ROOT / "docs" / "OPTIONS.md", ROOT / "docs" / "MIGRATING.md")
_UNTITLED = re.compile(r"^(options|positional arguments)$| \(.*")  # argparse's own titles, and remarks in ours
_MADE = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_PARSERS = {  # a command's name on the pages -> the function that builds its parser
    "inference.py": "inference:build_parser",
    "inference.py --jasper": "inference:build_recognition_parser",
    "serve.py": "serve:build_parser",
    "extract_mels.py": "extract_mels:build_parser",
    "extract_mels.py --checkpoint": "extract_mels:teacher_forcing_parser",
    "import_recordings.sh": "scripts.import_recordings:build_parser",
    "evaluate_voice.sh": "scripts.evaluate_voice:build_parser",
    "quickstart.sh": "scripts.demos.quickstart:build_parser",
}


@cache
def parsers() -> dict[str, ArgumentParser]:
    """Return the parser of each command; those of train.py by model."""
    training = {model: resolve_name("train:build_parser")(model) for model in available_models()}
    return training | {command: resolve_name(place)() for command, place in _PARSERS.items()}


def commands(users: Iterable[str]) -> str:
    """Return commands and models of train.py as a cell; all models together are train.py."""
    names, models = list(users), available_models()
    if set(models) <= set(names):
        names = ["train.py", *(name for name in names if name not in models)]
    return ", ".join(f"`{name}`" if "." in name else name for name in names)


def options_part() -> str:
    """Return a section for each command, with the options that no command above it has."""
    places: dict[tuple[str, str], tuple[str, str]] = {}  # names and meaning of an option -> its first command and group
    sections: dict[tuple[str, str], dict[tuple[str, str], dict[str, str]]] = {}  # -> its options -> defaults by command
    for user, parser in parsers().items():
        for group in parser._action_groups:
            for action in group._group_actions:
                if action.help != argparse.SUPPRESS and action.dest not in ("help", "version"):
                    option, default = _cells(action, parser.prog)
                    command = "train.py" if user in available_models() else user
                    place = places.setdefault(option, (command, _UNTITLED.sub("", group.title or "")))
                    sections.setdefault(place, {}).setdefault(option, {})[user] = default
    text = ""
    for (command, title), options in sections.items():
        text += "" if f"\n## {command}\n" in text else f"\n## {command}\n"
        text += f"\n### {title[:1].upper()}{title[1:]}\n" if title else ""
        rows = [(cell, _join_defaults(one), meaning, commands(one)) for (cell, meaning), one in options.items()]
        shared = len({users for *_, users in rows}) == 1  # then they are above the table
        text += f"\nCommands: {rows[0][-1]}\n" if shared and rows[0][-1] != f"`{command}`" else ""
        titles = "option, variable | default | meaning" + " | commands" * (not shared)
        text += table(titles, (row[: 4 - shared] for row in rows))
    return text


def _cells(action: argparse.Action, program: str) -> tuple[tuple[str, str], str]:
    """Return an option's names with placeholder and variable, its meaning, and its default."""
    text = (action.help or "").removesuffix(" (default: %(default)s)") % {**vars(action), "prog": program}
    default = "required" if action.required else _default(action.default)
    if not default and (bracketed := re.search(r"\s*\[([^\]]*)\]$", text)):  # of options without a default in argparse
        text, default = text[: bracketed.start()], "" if bracketed[1] == "None" else f"`{bracketed[1]}`"
    if action.choices:
        text += f"{': ' if text else ''}{', '.join(f'`{choice}`' for choice in action.choices)}"
    cell = _code(action.option_strings or [action.dest.upper()])
    if action.option_strings and action.metavar:
        cell += f" {action.metavar}"
    if variable := getattr(getattr(action, "declared", None), "variable", None):
        cell += f", `{variable}`"
    return (cell, _escape(text)), default


def _default(value: Any) -> str:
    if value is True:
        return "on"
    if value is None or value is False or value == [] or value == argparse.SUPPRESS:
        return ""
    return f"`{words_of_value(value)}`".replace(f"{ROOT}/", "")


def _join_defaults(defaults: Mapping[str, str]) -> str:
    """Return a default, or several with the models and commands that have them."""
    by_default: dict[str, list[str]] = {}
    for user, default in defaults.items():
        by_default.setdefault(default, []).append(user)
    if len(by_default) == 1:
        return next(iter(by_default))
    return "; ".join(f"{', '.join(users)}: {default or 'none'}" for default, users in by_default.items())


def settings_part() -> str:
    """Return a row for each setting of the scripts."""
    found: dict[tuple[str, str], list[str]] = {}  # names and meaning -> scripts
    for name, script in sorted(load_scripts().items()):
        for field, _, known in options_of(script.own):
            if known.variable:
                choices = f": {', '.join(known.choices)}" if known.choices else ""
                setting = _code([known.variable, option_of(field)])
                found.setdefault((setting, _escape(known.help + choices)), []).append(name)
    rows = sorted((setting, _code(scripts), meaning) for (setting, meaning), scripts in found.items())
    return table("variable, option | scripts | meaning", rows)


def published_options_part() -> str:
    """Return a row for the published options that each of ours replaces, and for those that were removed."""
    architecture = architecture_answers([get_model(name) for name in available_models()])
    found: dict[tuple[str, str], list[str]] = {}
    for user, parser in parsers().items():
        for name, here in parser.published.items():
            if name.replace("_", "-") not in architecture:
                found.setdefault((name, here), []).append(user)
    return _published_table({key: commands(users) for key, users in found.items()}, "commands")


def published_variables_part() -> str:
    """Return a row for the published variables that each of ours replaces, and for those that were removed."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for name, script in sorted(load_scripts().items()):
        for _, known, _ in (one for model in script.models or ("",) for one in script.declarations(model)):
            variable, *others = variables_of(known)
            for other in others:
                found.setdefault((other, variable), {})[name] = None
    for variable, places, reason in removed_variables():
        found[variable, reason] = dict.fromkeys(place.partition("/")[0] for place in places.split())
    return _published_table({key: _code(scripts) for key, scripts in sorted(found.items())}, "scripts")


def _published_table(found: Mapping[tuple[str, str], str], title: str) -> str:
    """Return a table of published names, grouped by commands or scripts and by replacement; a reply has spaces."""
    names: dict[tuple[str, str], list[str]] = {}
    for (name, here), users in found.items():
        replacement = "removed" if " " in here else f"accepted as `{here}`"  # commands print the reply
        names.setdefault((users, replacement), []).append(name)
    rows = ((_code(published), *cells) for cells, published in names.items())
    return table(f"published | {title} | here", sorted(rows, key=lambda row: "removed" in row))


def table(titles: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table with titles separated by ``|``."""
    lines = [titles, "|".join([" --- "] * len(titles.split("|"))).strip(), *(" | ".join(row) for row in rows)]
    return "\n" + "".join(f"| {line} |\n" for line in lines)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _escape(text: str) -> str:
    return re.sub(r"([|*<])", r"\\\1", text)


PARTS = {
    "options": options_part,
    "settings": settings_part,
    "published_options": published_options_part,
    "published_variables": published_variables_part,
}


def main() -> None:
    """Write the pages; a test fails if one is stale."""
    for path in PAGES:
        text = _MADE.sub(lambda found: f"{found[1]}{PARTS[found[2]]()}\n{found[3]}", read_text(path))
        write_text(path, text)


if __name__ == "__main__":
    run(main)
