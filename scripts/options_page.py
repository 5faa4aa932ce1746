"""Writes the tables of docs/OPTIONS.md and docs/MIGRATING.md from the declared options.

``<!-- made: WHAT COMMAND -->`` and ``<!-- end -->`` enclose a table. ``WHAT`` is a key of `PARTS`, and a command
is a key of `PARSERS`. Everything else on the pages is written by hand.
"""

import argparse
import re
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from itertools import groupby
from typing import Any, NamedTuple

from common.cli import ArgumentParser, run
from common.files import read_text, write_text
from common.options import option_of, options_of as declared_in, variables_of, words_of_value
from common.registry import available_models, get_model
from scripts.launch import ROOT, load_scripts, removed_variables

PAGES = (ROOT / "docs" / "OPTIONS.md", ROOT / "docs" / "MIGRATING.md")
UNTITLED = ("options", "positional arguments")  # argparse's own titles of groups
_MADE = re.compile(r"(<!-- made: (\w+)(?: ([^\n]+))? -->\n).*?(<!-- end -->)", re.DOTALL)
PARSERS = {  # a command's name on the pages -> module and function of its parser
    "train.py": ("train", "build_parser"),
    "inference.py": ("inference", "build_parser"),
    "inference.py --jasper": ("inference", "build_recognition_parser"),
    "serve.py": ("serve", "build_parser"),
    "extract_mels.py": ("extract_mels", "build_parser"),
    "extract_mels.py --checkpoint": ("extract_mels", "teacher_forcing_parser"),
    "import_recordings.sh": ("scripts.import_recordings", "build_parser"),
    "evaluate_voice.sh": ("scripts.evaluate_voice", "build_parser"),
    "quickstart.sh": ("scripts.demos.quickstart", "build_parser"),
}


def parser_of(command: str, *words: str) -> ArgumentParser:
    """Return the parser of a command; for train.py, that of a model, by default the first."""
    module, function = PARSERS[command]
    return getattr(import_module(module), function)(*words)


class Option(NamedTuple):
    """An option as the page shows it."""

    names: tuple[str, ...]
    cell: str  # names, placeholder for its values, and variable
    default: str
    meaning: str
    group: str


def options_of(parser: argparse.ArgumentParser) -> list[Option]:
    """Return all options of a parser except ``--help`` and ``--version``, in the order of its help."""
    return [
        _option(action, parser, "" if group.title in (*UNTITLED, *available_models()) else group.title or "")
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
    names = tuple(action.option_strings) or (action.dest.upper(),)
    values = [action.metavar] if isinstance(action.metavar, str) else action.metavar or ()
    cell = " ".join([_code(names), *(values if action.option_strings else ())])
    if variable := getattr(getattr(action, "declared", None), "variable", None):
        cell += f", `{variable}`"
    return Option(names, cell, default, _escape(text), group)


def _default(value: Any) -> str:
    if value is True:
        return "on"
    if value is None or value is False or value == [] or value == argparse.SUPPRESS:
        return ""
    return f"`{words_of_value(value)}`".replace(f"{ROOT}/", "")


def _escape(text: str) -> str:
    """Return the text of a cell, escaped except for backquotes."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([|*<])", r"\\\1", part) for part in parts)


def table(titles: str, rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table with titles separated by ``|``."""
    lines = [titles, "|".join([" --- "] * len(titles.split("|"))).strip(), *(" | ".join(row) for row in rows)]
    return "\n" + "".join(f"| {line} |\n" for line in lines)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


@cache
def merged_options() -> dict[Option, dict[str, str]]:
    """Return each option once, with its defaults by user: a command, or a model of train.py."""
    parsers = {model: parser_of("train.py", model) for model in available_models()}
    parsers |= {command: parser_of(command) for command in PARSERS if command != "train.py"}
    defaults: dict[Option, dict[str, str]] = {}
    groups: dict[Option, str] = {}
    for user, parser in parsers.items():
        for option in options_of(parser):
            key = option._replace(default="", group="")
            defaults.setdefault(key, {})[user] = option.default
            groups[key] = option.group
    return {key._replace(group=groups[key]): users for key, users in defaults.items()}


def tables(options: dict[Option, dict[str, str]], *, level: int, show_users: bool = False) -> str:
    """Return a table for each group of options, with a heading if the group has a title."""
    text = ""
    groups = list(dict.fromkeys(["", *(option.group for option in options)]))
    users_of = {option: _code(_commands(users)) if show_users else "" for option, users in options.items()}
    places = list(dict.fromkeys(users_of.values()))
    ordered = sorted(options, key=lambda one: (groups.index(one.group), places.index(users_of[one])))
    for group, members in groupby(ordered, key=lambda one: one.group):
        text += f"\n{'#' * level} {group[:1].upper()}{group[1:]}\n" if group else ""
        for users, rows in groupby(members, key=lambda one: users_of[one]):
            text += f"\n{users}:\n" if users else ""
            text += table("option, variable | default | meaning", (_row(one, options[one]) for one in rows))
    return text


def _commands(users: Iterable[str]) -> list[str]:
    """Return the commands of these users: train.py once, with the models unless it's all of them."""
    models = [user for user in users if user in available_models()]
    train = "train.py" if len(models) == len(available_models()) else f"train.py -m {', '.join(models)}"
    return [train] * bool(models) + [user for user in users if user not in models]


def _row(option: Option, defaults: dict[str, str]) -> tuple[str, str, str]:
    """Return the cells of an option; defaults that most users don't share name their users."""
    by_default: dict[str, list[str]] = {}
    for user, default in defaults.items():
        by_default.setdefault(default, []).append(user)
    usual = max(by_default, key=lambda default: len(by_default[default]))
    parts = [usual] if len(by_default[usual]) * 2 > len(defaults) else []
    parts += [f"{', '.join(users)} {one or 'none'}" for one, users in by_default.items() if [one] != parts[:1]]
    return option.cell, "; ".join(filter(None, parts)), option.meaning


def options_part(command: str | None) -> str:
    """Return the options that only this command has, or without one those that several commands share."""
    found = merged_options()
    if command is None:
        return tables({one: found[one] for one in found if len(_commands(found[one])) > 1}, level=3, show_users=True)
    return tables({one: found[one] for one in found if list(found[one]) == [command]}, level=3)


def training_part(_: str) -> str:
    """Return the options that only train.py has, with a heading for each set of models."""
    by_models: dict[tuple[str, ...], dict[Option, dict[str, str]]] = {}
    for option, users in merged_options().items():
        if set(users) <= set(available_models()):
            by_models.setdefault(tuple(users), {})[option] = users
    text = ""
    for models, options in sorted(by_models.items(), key=lambda item: -len(item[0])):
        title = "all models" if len(models) == len(available_models()) else " and ".join(models)
        text += f"\n### Options of {title}\n" + tables(options, level=4)
    return text


def settings_part(_: str) -> str:
    """Return a row for each setting of the scripts; only the first row of the same scripts names them."""
    found: dict[tuple[str, str], list[str]] = {}  # names and meaning -> scripts
    for name, script in sorted(load_scripts().items()):
        for field, _, known in declared_in(script.own):
            if known.variable:
                option = option_of(field)
                usual = option == f"--{known.variable.lower().replace('_', '-')}"
                choices = f": {', '.join(known.choices)}" if known.choices else ""
                setting = _code([known.variable] if usual else [known.variable, option])
                found.setdefault((setting, _escape(known.help + choices)), []).append(f"{name}.sh")
    by_scripts: dict[str, list[tuple[str, str]]] = {}
    for setting, scripts in found.items():
        by_scripts.setdefault(_code(scripts), []).append(setting)
    rows = []
    for scripts, settings in by_scripts.items():
        rows += [(scripts, *settings[0]), *(("", *setting) for setting in settings[1:])]
    return table("scripts | setting | meaning", rows)


def published_part(command: str) -> str:
    """Return a row for the published options that each of ours replaces, and one for those that were removed."""
    replacements: dict[str, str] = {}
    for words in [(model,) for model in available_models()] if command == "train.py" else [()]:
        replacements = parser_of(command, *words).published | replacements
    configs = [get_model(name).config.ModelConfig for name in available_models()]
    architecture = {option_of(name) for config in configs for name in config.__dataclass_fields__}
    rows = ((name, text) for name, text in replacements.items() if name.replace("_", "-") not in architecture)
    return _published_table("published | here", rows)


def published_variables_part(_: str) -> str:
    """Return a row for the published variables that each of ours replaces, and one for those that were removed."""
    found: dict[tuple[str, str], dict[str, None]] = {}  # variable and replacement -> scripts
    having: dict[str, dict[str, None]] = {}  # replacement -> scripts
    for name, script in sorted(load_scripts().items()):
        for _, known, _ in (one for model in script.models or ("",) for one in script.declarations(model)):
            variable, *others = variables_of(known)
            having.setdefault(variable, {})[f"{name}.sh"] = None
            for other in others:
                found.setdefault((other, variable), {})[f"{name}.sh"] = None
    for variable, places, reason in removed_variables():
        found[variable, reason] = dict.fromkeys(f"{place.partition('/')[0]}.sh" for place in places.split())
    rows = []  # without scripts if it's all that have the replacement
    for (variable, here), scripts in sorted(found.items()):
        named = "" if scripts == having.get(here) else _code(scripts).replace("`all.sh`", "all")
        rows.append((variable, named, here))
    return _published_table("published | scripts | here", rows)


def _published_table(titles: str, rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table of rows: published name, further cells, and replacement or reason of removal."""
    names: dict[tuple[str, ...], list[str]] = {}
    for name, *cells, here in rows:
        replacement = "removed" if " " in here else f"accepted as `{here}`"  # commands print the reason
        names.setdefault((*cells, replacement), []).append(name)
    ordered = sorted(names.items(), key=lambda row: row[0][-1] == "removed")
    return table(titles, ((_code(published), *cells) for cells, published in ordered))


PARTS = {
    "options": options_part,
    "training": training_part,
    "settings": settings_part,
    "published": published_part,
    "published_variables": published_variables_part,
}


def main() -> None:
    """Write the pages; a test fails if one is stale."""
    for path in PAGES:
        text = _MADE.sub(lambda found: f"{found[1]}{PARTS[found[2]](found[3])}\n{found[4]}", read_text(path))
        write_text(path, text)


if __name__ == "__main__":
    run(main)
