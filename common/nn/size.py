"""Sizes that networks may have, and networks refused before memory is taken for them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from common.errors import OptionError, shown
from common.options import option_of

Networks = dict[str, nn.Module]


class TooLargeError(Exception):
    """A network has more parameters and buffers than it may; says how many it may have."""


def build_limited(build: Callable[[], Networks], *, most: int) -> Networks:
    """The networks that ``build`` makes, which it has made on the device "meta" before, where they take no memory.

    Raises:
        TooLargeError: they have more than ``most`` elements of parameters and buffers.
    """
    with torch.device("meta"):
        modules = build().values()
    if sum(tensor.numel() for one in modules for tensor in (*one.parameters(), *one.buffers())) > most:
        raise TooLargeError(f"more than {most} parameters")
    return build()


def check_architecture(config: Any) -> None:
    """Refuse by OptionError a size that no network has, an even kernel, or ``p_*`` that is no probability."""
    for name, value in vars(config).items():
        problem = None
        if name.endswith("kernel_size") and (value < 1 or value % 2 == 0):
            problem = "an odd number, which keeps lengths as they are"
        elif name.startswith("p_"):
            problem = None if 0 <= value < 1 else "a probability of at least 0 and less than 1"
        elif type(value) is int and value < (0 if name == "padding_idx" else 1):
            problem = "a whole number of at least 1"
        if problem is not None:
            raise OptionError(f"{option_of(name)} {value}: expected {problem}")


def value_text(value: object) -> str:
    """A field's value as it is given on the command line: ``3 7 11``, or ``1,3,5 1,3,5``."""
    if not isinstance(value, tuple):
        return shown(value).strip("'")
    return " ".join(",".join(map(str, item)) if isinstance(item, tuple) else str(item) for item in value)


def option_with_value(name: str, value: object) -> str:
    """A field's option with its value, for messages."""
    return f"{option_of(name)} {value_text(value)}"
