"""Options, each declared once as a field of a frozen dataclass in the package that uses it.

The command line, variables of scripts, validation of files, ``--help``, docs/OPTIONS.md and docs/MIGRATING.md all
use these declarations. Modules that declare options don't import PyTorch, which keeps ``--help`` fast.
"""

import argparse
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import partial
from types import NoneType
from typing import Any, get_args

from common.errors import InputError, OptionError, shown


@dataclass(frozen=True)
class Option:
    """The declaration of an option; ranges apply to each number."""

    help: str
    names: tuple[str, ...] = ()  # other names, such as -bs
    section: str | None = None  # title in --help, or "title: description"
    published: tuple[str, ...] = ()  # the originals' options (--lr) and variables (LR) that are aliases
    variable: str | None = None  # the scripts' variable
    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf
    odd: bool = False
    choices: Collection[str] | None = None
    words: Mapping[str, Any] = field(default_factory=dict)  # special words and their values, such as all for None
    metavar: str | None = None
    const: Any = None  # value if the option is given without one
    negatable: bool = False  # a switch has a --no-... form even if it's off by default
    off: tuple[str, ...] = ()  # other names of --no-...
    empty: bool = False  # an option with several values accepts none
    adds_up: bool = False  # repeating the option adds values
    required: bool = False
    writes: bool = False  # the path is a file or folder to write
    read: Callable[[str], Any] | None = None  # parses a word, instead of the type; raises InputError

    def problem(self, value: Any) -> str | None:
        """Describe what is expected instead of ``value``; None if it's valid."""
        if value is None or value in self.words.values():
            return None
        if self.choices is not None and value not in self.choices:
            return f"one of {', '.join(self.choices)}"
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        is_inside = self.least <= value <= self.most and self.above < value < self.below
        return None if is_inside and not (self.odd and value % 2 == 0) else self.range_of(type(value))

    def range_of(self, kind: type) -> str:
        """Describe the range of numbers of ``kind``."""
        bounds = (("of at least", self.least), ("above", self.above), ("at most", self.most), ("below", self.below))
        limits = " and ".join(f"{words} {bound:g}" for words, bound in bounds if math.isfinite(bound))
        return f"{'an odd' if self.odd else 'a whole' if kind is int else 'a'} number {limits}".rstrip()


def option(default: Any, help: str, **known: Any) -> Any:
    """Declare a dataclass field as an option; ``known`` are fields of `Option`."""
    return field(default=default, metadata={"option": Option(help, **known)})


def group(kind: type, section: str | None = None, *, by_name: bool = False) -> Any:
    """Declare a field that holds a dataclass of further options; in ``--help``, ``section`` is their title.

    With ``by_name``, it holds a dict of the given values; others come from elsewhere, such as a checkpoint.
    """
    return field(default_factory=dict if by_name else kind, metadata={"group": (kind, section, by_name)})


def declared(one: Field) -> Option | None:
    """Return the declaration of a field if it's an option."""
    return one.metadata.get("option")


def option_of(name: str) -> str:
    """Return the name of a field's option: ``batch_size`` -> ``--batch-size``."""
    return "--" + name.replace("_", "-")


def add_options(
    parser: argparse._ActionsContainer,
    kind: type,
    *,
    defaults: Mapping[str, Any] | None = None,
    without: Collection[str] = (),
    title: str | None = None,
) -> None:
    """Add the options of a dataclass and its groups, except fields in ``without``.

    ``defaults`` override declared defaults by field name. ``title`` is the section of options without one.
    """
    defaults = defaults or {}
    for one in fields(kind):
        known, (group_kind, group_title, by_name) = declared(one), one.metadata.get("group", (None, None, False))
        if one.name in without:
            continue
        if known is not None:
            section = _section_of(parser, known.section or title)
            _add_option(section, one.name, one.type, known, defaults.get(one.name, one.default))
        elif by_name:
            section = _section_of(parser, group_title or title)
            for name, hint, known in options_of(group_kind):
                value = words_of_value(getattr(group_kind, name))
                bracketed = replace(known, help=f"{known.help} [{value}]", negatable=True)
                _add_option(section, name, hint, bracketed, defaults.get(name))
        elif group_kind is not None:
            add_options(_section_of(parser, group_title), group_kind, defaults=defaults, without=without)


def words_of_value(value: Any) -> str:
    """Return a value as written on the command line: ``3 7 11``, or ``1,3,5 1,3,5``."""
    if not isinstance(value, tuple | list):
        return str(value)
    return " ".join(",".join(map(str, one)) if isinstance(one, tuple | list) else str(one) for one in value)


def _section_of(parser: argparse._ActionsContainer, section: str | None) -> argparse._ActionsContainer:
    """Return the parser's group for a section, created on first use."""
    if section is None:
        return parser
    title, _, about = section.partition(": ")
    found = next((one for one in parser._action_groups if one.title == title), None)
    return found or parser.add_argument_group(title, about or None)


def _add_option(parser: argparse._ActionsContainer, name: str, hint: Any, known: Option, default: Any) -> None:
    kind, several = _type_of(hint)
    given: dict[str, Any] = {"help": known.help, "dest": name, "default": default}
    if known.required or default is MISSING:
        given |= {"required": True, "default": None}
    if kind is bool:
        alone = default is False and not known.negatable
        given["action"] = "store_true" if alone else argparse.BooleanOptionalAction
    else:
        one_of = replace(known, words={}) if several else known  # these words stand for all values, in variables only
        given |= {"type": partial(read_word, kind=kind, known=one_of), "metavar": known.metavar}
        if default not in (None, (), MISSING) and "default" not in known.help:
            given["help"] += " (default: %(default)s)"
        if known.choices is not None and not known.words:
            given["choices"] = known.choices
        if several:
            given["nargs"] = "*" if known.empty else "+"
            given["default"] = list(default) if isinstance(default, tuple) else default
            if known.adds_up:
                given |= {"action": "extend", "default": list(default or ())}
        elif known.const is not None:
            given |= {"nargs": "?", "const": known.const}
    names = sorted((option_of(name), *known.names), key=lambda one: one.startswith("--"))
    action = parser.add_argument(*names, **given)
    action.declared = known  # type: ignore[attr-defined]
    for published in known.published:
        if published.startswith("-"):
            parser._option_string_actions.setdefault(published, action)
    if known.off:
        off: dict[str, Any] = {"action": "store_false", "default": argparse.SUPPRESS}
        parser.add_argument(*known.off, dest=name, help=f"without {option_of(name)}", **off)


def _type_of(hint: Any) -> tuple[type, bool]:
    """Return the type of a field's values, and whether it has several: ``tuple[int, ...] | None`` -> int, True."""
    choices = [one for one in get_args(hint) if one is not NoneType]
    if NoneType in get_args(hint):
        return _type_of(choices[0])
    return (choices[0], True) if choices else (hint, False)


def read_word(text: str, kind: type, known: Option) -> Any:
    """Parse a word of a command line or a variable; raises OptionError."""
    if text.lower() in known.words:
        return known.words[text.lower()]
    if known.read is not None:
        return known.read(text)
    if not text:
        raise OptionError("'': expected non-empty text")
    try:
        value = kind(text)
        wanted = known.problem(value)
    except ValueError:
        wanted = known.range_of(kind)
    if wanted:
        others = "".join(f", or {word}" for word in known.words)
        raise OptionError(f"{text}: expected {wanted}{others}")
    return value


def read_value(value: Any, hint: Any, known: Option) -> Any:
    """Parse an option's value of type ``hint`` from a JSON file; same errors as `read_word`."""
    kind, several = _type_of(hint)
    if several:
        return tuple(read_word(word, kind, known) for word in words_of_value(value).split())
    return None if value is None else read_word(str(value), kind, known)


def read_options(args: argparse.Namespace, kind: type, **others: Any) -> Any:
    """Build the dataclass ``kind`` from parsed options; ``others`` are values of its other fields."""
    values = dict(others)
    for one in fields(kind):
        if one.name in others:
            continue
        group_kind, _, by_name = one.metadata.get("group", (None, None, False))
        if by_name:
            found = {name: getattr(args, name) for name, _, _ in options_of(group_kind)}
            values[one.name] = {name: _frozen(value) for name, value in found.items() if value is not None}
        elif group_kind is not None:
            values[one.name] = read_options(args, group_kind)
        elif declared(one) is not None and hasattr(args, one.name):
            values[one.name] = _frozen(getattr(args, one.name))
    return kind(**values)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def read_switch(name: str, value: str) -> bool:
    """Parse the value of a variable that is a switch; raises OptionError."""
    if value.lower() in ("1", "true", "yes", "on"):
        return True
    if value.lower() in ("0", "false", "no", "off"):
        return False
    raise OptionError(f"{name}={shown(value)[1:-1]}: expected true or false (or 1, yes, on, or 0, no, off)")


def variables_of(known: Option) -> list[str]:
    """Return the variables that set an option: ours, if there is one, and the originals'."""
    originals = [one for one in known.published if one[0] != "-"]
    return originals if known.variable is None else [known.variable, *originals]


def words_of_variables(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> list[str]:
    """Return the command line equivalent to the variables in ``environ``; empty ones count as unset.

    Raises an OptionError that names a variable with an invalid value, or variables that disagree on one option.
    """
    words = []
    for action in parser._actions:
        known = getattr(action, "declared", None)
        if known is not None and (found := [one for one in variables_of(known) if environ.get(one)]):
            if len({environ[one] for one in found}) > 1:
                raise OptionError(f"{', '.join(f'{one}={environ[one]}' for one in found)}: one option; give only one")
            words += _words_of_variable(found[0], environ[found[0]], action, known)
    return words


def _words_of_variable(name: str, value: str, action: argparse.Action, known: Option) -> list[str]:
    spelled = option_of(action.dest)
    if action.nargs == 0:
        negated = [one for one in action.option_strings if one.startswith("--no-")]
        return [spelled] if read_switch(name, value) else negated[:1]
    several = action.nargs in ("+", "*")
    words = [value] if not several else [] if value.lower() in known.words else value.split()
    for one in words:
        try:
            action.type(one)  # type: ignore[misc, operator]  # set by add_options
        except InputError as error:
            raise OptionError(f"{name}={error}") from error
    return [spelled, *words] if several or not value.startswith("-") else [f"{spelled}={value}"]


def check_options(values: Any) -> None:
    """Raise an InputError that names the field if an option's value is invalid."""
    for one in fields(values):
        known, value = declared(one), getattr(values, one.name)
        for item in value if isinstance(value, tuple) else (value,):
            if known is not None and (wanted := known.problem(item)):
                raise InputError(f"{one.name} {shown(item)}: expected {wanted}")


def options_of(kind: type) -> Iterator[tuple[str, Any, Option]]:
    """Yield the name, type and declaration of each option in a dataclass and its groups."""
    for one in fields(kind):
        if "group" in one.metadata:
            yield from options_of(one.metadata["group"][0])
        elif (known := declared(one)) is not None:
            yield one.name, one.type, known
