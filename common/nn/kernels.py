"""Kernels of our own in the place of plain PyTorch on GPUs, each once it has given the same there."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import torch

R = TypeVar("R")
_usable: dict[str, bool] = {}  # kernels that have been tried


def by_kernel(plain: Callable[..., R], *given: Any) -> R:
    """``plain(*given)``, on a GPU by the kernel of the same name in `common.nn.triton_kernels`.

    The first use of a kernel waits for both and compares them. If they differ, or Triton is missing or cannot compile,
    ``plain`` is used from then on, after one warning.
    """
    name = plain.__name__
    if given[0].device.type != "cuda" or not _usable.get(name, torch.cuda.is_available()):
        return plain(*given)
    if name in _usable:
        return _kernel(name)(*given)
    expected = plain(*given)
    try:
        torch.testing.assert_close(_kernel(name)(*given), expected, equal_nan=True)
        _usable[name] = True
    except Exception as error:
        _usable[name] = False
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        print(f"warning: {name} takes many small kernels: its own cannot be used ({reason})", file=sys.stderr)
    return expected


def _kernel(name: str) -> Callable[..., Any]:
    from common.nn import triton_kernels  # here, as only GPUs have Triton

    return getattr(triton_kernels, name)
