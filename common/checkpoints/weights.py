"""What weights must be: those of the network, held by the file, finite, and in their range."""

from collections.abc import Iterator

from torch import Tensor

from common.errors import CheckpointError

Weights = dict[str, dict[str, Tensor]]  # network -> name -> tensor

_LONGEST_LIST = 6  # weights named in an error
_MOST_REPEATED = 100_000_000  # weights: those of the largest that are published so, for tests
_SPREADS = ("_var", "_std")  # variances and standard deviations, by the ends of their names


def check_weights(own: Weights, given: Weights, *, where: str, kind: str = "weights") -> None:
    """Refuse state dicts that cannot be loaded into networks with the state dicts ``own``.

    Every key, shape and kind of number must be as expected. ``kind`` of weights they are, ``where`` begins errors.

    Raises:
        CheckpointError: lists what is missing, unexpected or of another shape or kind, or as `check_held` and
            `check_values`.
    """
    lines = [f"no network {name}" for name in own if name not in given]
    for name, state in own.items():
        if name in given:
            lines += differences(state, given[name])
    refuse(lines, where=where, kind=kind)
    used = {name: given[name] for name in own}
    check_held(used, where=where)
    check_values(used, where=where, kind=kind)


def check_values(networks: Weights, *, where: str, kind: str = "weights") -> None:
    """Refuse values that no network computes with.

    Raises:
        CheckpointError: names those that are not finite, and variances below 0.
    """
    refuse([line for state in networks.values() for line in _value_problems(state)], where=where, kind=kind)


def check_held(networks: Weights, *, where: str) -> None:
    """Raise CheckpointError before copying weights if too many of them are repeated values of expanded views."""
    values = [value for state in networks.values() for value in state.values()]
    held = [value.untyped_storage().nbytes() // value.element_size() for value in values]
    n_repeated = sum(max(0, value.numel() - count) for value, count in zip(values, held))
    if n_repeated > _MOST_REPEATED:
        raise CheckpointError(f"{where}: repeats values for {n_repeated} of its weights, which it does not hold")


def differences(own: dict[str, Tensor], given: dict[str, Tensor]) -> list[str]:
    """A line for each key, shape and kind of number in which a state dict differs from the ``own`` one."""
    lines = [f"missing {key}" for key in own if key not in given]
    lines += [f"unexpected {key}" for key in given if key not in own]
    shapes = [(key, tuple(given[key].shape), tuple(own[key].shape)) for key in own if key in given]
    lines += [f"{key} is {found}, expected {wanted}" for key, found, wanted in shapes if found != wanted]
    kinds = [(key, str(given[key].dtype)[6:], str(own[key].dtype)[6:]) for key in own if key in given]
    return lines + [
        f"{key} is of {found}, expected {wanted}"
        for key, found, wanted in kinds
        if given[key].is_floating_point() != own[key].is_floating_point()
    ]


def _value_problems(state: dict[str, Tensor]) -> Iterator[str]:
    for key, given in state.items():
        value = given[tuple(slice(1) if stride == 0 else slice(None) for stride in given.stride())]  # each once
        # A sum is quick and finite only of finite values; where it is not, it may have overflown.
        if not bool(value.sum().isfinite()) and not bool(value.isfinite().all()):
            yield f"{key} is not finite"
        elif key.endswith(_SPREADS) and bool((value < 0).any()):
            yield f"{key} is below 0"


def refuse(lines: list[str], *, where: str, kind: str = "weights") -> None:
    """Raise CheckpointError that lists ``lines``, if there are any."""
    if lines:
        listed = "; ".join(lines[:_LONGEST_LIST])
        rest = f"; and {len(lines) - _LONGEST_LIST} more" if len(lines) > _LONGEST_LIST else ""
        raise CheckpointError(f"{where}: its {kind} do not fit the model: {listed}{rest}")
