"""Changes that the device makes or leaves out by a flag of its own, which the host never waits for.

``applied`` is a float32 scalar on the device, 1 or 0. What may hold NaN or infinity cannot be multiplied by 0; its bits
read as integers can, and multiplied by 1 they stay what they are.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes of an element


def zero_unless(applied: Tensor, tensors: Sequence[Tensor]) -> None:
    """Make ``tensors`` zero in place, whatever they hold, unless ``applied``."""
    for integers in _integer_views(tensors):
        torch._foreach_mul_(integers, applied.to(integers[0].dtype))


def restore_unless(applied: Tensor, tensors: Sequence[Tensor], copies: Sequence[Tensor]) -> None:
    """Give ``tensors`` the values of ``copies``, which are used up, unless ``applied``."""
    zero_unless(applied, tensors)
    zero_unless(1 - applied, copies)
    for integers, added in zip(_integer_views(tensors), _integer_views(copies)):
        torch._foreach_add_(integers, added)


def choose(applied: Tensor, value: float, otherwise: float) -> Tensor:
    """``value`` if ``applied``, else ``otherwise``: a float32 scalar on the device."""
    return applied * value + (1 - applied) * otherwise


def _integer_views(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Views of the tensors as integers of the same element size, in one list for each size."""
    for size, dtype in _INTEGERS.items():
        if views := [tensor.view(dtype) for tensor in tensors if tensor.element_size() == size]:
            yield views
