"""Networks refused before memory is taken for them."""

from collections.abc import Callable

import torch
from torch import nn

from common.errors import OptionError

Networks = dict[str, nn.Module]


def build_limited(build: Callable[[], Networks], *, most: int) -> Networks:
    """The networks that ``build`` makes, which it has made on the device "meta" before, where they take no memory.

    Raises:
        OptionError: they have more than ``most`` elements of parameters and buffers.
    """
    with torch.device("meta"):
        modules = build().values()
    if sum(tensor.numel() for one in modules for tensor in (*one.parameters(), *one.buffers())) > most:
        raise OptionError(
            f"networks of more than {most} parameters; make them smaller, or raise --max-parameters {most}"
        )
    return build()
