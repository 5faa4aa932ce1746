"""Sizes that networks may have, and networks refused before memory is taken for them."""

from collections.abc import Callable

import torch
from torch import nn

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
