"""Sizes that networks may have, and networks built as long as they are not too large, before memory is taken."""

import math
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.nn.modules.module import register_module_module_registration_hook
from torch.overrides import TorchFunctionMode

from common.cli import option_of
from common.errors import OptionError

_T = TypeVar("_T")
# What modules make their parameters and buffers by.
_FACTORIES = (torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn)


class TooLargeError(Exception):
    """A network has more parameters or modules than it may; says how many those are."""


class _Counted(TorchFunctionMode):
    """Counts the elements of new tensors before they are made."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most, self._left = most, most

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _FACTORIES:
            size = kwargs.get("size", args[:1] if func is torch.full else args)
            size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
            self._take(math.prod(max(n, 1) for n in size))
        elif func is torch.arange:
            self._take(max((int(abs(n)) for n in args), default=0))
        return func(*args, **kwargs)

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise TooLargeError(f"more than {self._most} parameters")


def build_limited(build: Callable[[], _T], *, most: int, most_modules: int = 10_000) -> _T:
    """What ``build`` makes of modules.

    Raises:
        TooLargeError: before there are more than ``most`` elements of parameters and buffers, or more modules.
    """
    thread, n_modules = threading.get_ident(), 0

    def count(*_: Any) -> None:
        nonlocal n_modules
        n_modules += threading.get_ident() == thread
        if n_modules > most_modules:
            raise TooLargeError(f"more than {most_modules} modules")

    hook = register_module_module_registration_hook(count)
    try:
        with _Counted(most):
            return build()
    finally:
        hook.remove()


# By the end of a field's name; far above any network, and small enough to be built and refused by its parameters.
_MOST = {"n_layers": 500, "n_convolutions": 500, "kernel_size": 1001, "": 1_000_000}


def check_architecture(config: Any) -> None:
    """Refuse by OptionError a size that no network has, an even kernel, or ``p_*`` that is no probability."""
    for name, value in vars(config).items():
        problem = None
        most = next((most for end, most in _MOST.items() if name.endswith(end)), 0)
        if name.endswith("kernel_size") and (value < 1 or value % 2 == 0):
            problem = "an odd number, which keeps lengths as they are"
        elif name.startswith("p_"):
            problem = None if 0 <= value < 1 else "a probability of at least 0 and less than 1"
        elif type(value) is int and value < (0 if name == "padding_idx" else 1):
            problem = "a whole number of at least 1"
        elif type(value) is int and value > most:
            problem = f"at most {most}"
        if problem is not None:
            raise OptionError(f"{option_of(name)} {value}: expected {problem}")
