"""Errors that are for people: one line that says what is wrong, where, and what to do."""

import math
from collections.abc import Collection
from dataclasses import fields
from typing import Any


class InputError(Exception):
    """Bad input: a file, a list, a checkpoint or an utterance. Commands end with exit status 1."""


class OptionError(InputError):
    """Options that cannot be used or do not fit together. Commands end with exit status 2."""


class CheckpointError(InputError):
    """A checkpoint that cannot be read, is of another model, or does not fit this one."""


class AudioError(InputError):
    """An audio file that cannot be used: missing, truncated, of another rate, not mono, not finite."""


class OutputError(InputError):
    """A file or folder that cannot be written. Commands end with exit status 1."""


class FailedElsewhereError(Exception):
    """Another process of several has failed and says why; this one only has to end, with exit status 1."""


def check_choice(name: str, value: str | None, choices: Collection[str]) -> None:
    """Raise InputError unless ``value`` is one of ``choices``; ``name`` says what it is."""
    if value not in choices:
        raise InputError(f"{name} {value!r}: expected one of {', '.join(choices)}")


def at(where: str) -> str:
    """The place of an error, such as ``list.txt:7``, in brackets at the end of its message; "" for an unknown one."""
    return f" ({where})" if where else ""


def check_minimum(config: Any, minimum: int, *names: str) -> None:
    """Raise InputError if one of the fields is below ``minimum``."""
    for name in names:
        if getattr(config, name) < minimum:
            raise InputError(f"{name} {getattr(config, name)}: expected at least {minimum}")


def check_ranges(config: Any, *, above: float = -math.inf) -> None:
    """Raise InputError unless each ``min_<name>`` and its ``max_<name>`` are in that order and beyond ``above``."""
    for name in (field.name.removeprefix("min_") for field in fields(config) if field.name.startswith("min_")):
        low, high = getattr(config, f"min_{name}"), getattr(config, f"max_{name}")
        if not above < low <= high:
            bound = "" if math.isinf(above) else f"{above} < "
            raise InputError(f"min_{name} {low} and max_{name} {high}: expected {bound}min_{name} <= max_{name}")
