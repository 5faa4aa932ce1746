"""Weights compared with the network that they are for."""

from torch import Tensor

from common.errors import CheckpointError

Weights = dict[str, dict[str, Tensor]]  # network -> name -> tensor

_LONGEST_LIST = 6  # weights named in an error


def check_weights(own: Weights, given: Weights, *, where: str, kind: str = "weights") -> None:
    """Refuse state dicts that cannot be loaded into networks with the state dicts ``own``.

    ``kind`` of weights they are, ``where`` begins errors.

    Raises:
        CheckpointError: lists what is missing, unexpected or of another shape.
    """
    lines = [f"no network {name}" for name in own if name not in given]
    for name in own.keys() & given.keys():
        lines += _differences(own[name], given[name])
    if lines:
        listed = "; ".join(lines[:_LONGEST_LIST])
        rest = f"; and {len(lines) - _LONGEST_LIST} more" if len(lines) > _LONGEST_LIST else ""
        raise CheckpointError(f"{where}: its {kind} do not fit the model: {listed}{rest}")


def _differences(own: dict[str, Tensor], given: dict[str, Tensor]) -> list[str]:
    """A line for each key and shape in which a state dict differs from the ``own`` one."""
    lines = [f"missing {key}" for key in own if key not in given]
    lines += [f"unexpected {key}" for key in given if key not in own]
    shapes = [(key, tuple(given[key].shape), tuple(own[key].shape)) for key in own if key in given]
    return lines + [f"{key} is {found}, expected {wanted}" for key, found, wanted in shapes if found != wanted]
