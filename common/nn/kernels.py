"""Triton kernels in place of plain PyTorch on GPUs, once they have given the same result there."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import torch

R = TypeVar("R")
_usable: dict[str, bool] = {}  # kernels that have been tried


def by_kernel(plain: Callable[..., R], *args: Any) -> R:
    """``plain(*args)``, on a GPU by the kernel of the same name in `common.nn.triton_kernels`.

    The first use of a kernel runs both and compares them. If they differ, or Triton is missing or cannot compile, then
    or for later shapes, ``plain`` is used from then on, after one warning.
    """
    name = plain.__name__
    if args[0].device.type != "cuda" or not _usable.get(name, torch.cuda.is_available()):
        return plain(*args)
    expected = None if name in _usable else plain(*args)
    try:
        found = _kernel(name)(*args)
        if expected is not None:
            torch.testing.assert_close(found, expected, equal_nan=True)
    except Exception as error:
        _usable[name] = False
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        print(f"warning: {name} runs as many small kernels: Triton's cannot be used ({reason})", file=sys.stderr)
        return plain(*args) if expected is None else expected
    _usable[name] = True
    return found


def _kernel(name: str) -> Callable[..., Any]:
    from common.nn import triton_kernels  # here, as only GPUs have Triton

    return getattr(triton_kernels, name)
