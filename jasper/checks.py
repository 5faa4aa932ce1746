"""Checks of configuration values; each names the field, what it holds and what was expected."""

import math
from dataclasses import fields
from typing import Any

from common.errors import InputError


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
