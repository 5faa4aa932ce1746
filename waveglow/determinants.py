"""Determinants of WaveGlow's 1x1 convolutions, whose logarithms are part of its loss."""

from collections.abc import Sequence

import torch
from torch import Tensor

from common.errors import InputError
from common.nn import never_compiled


@never_compiled
def log_determinants(matrices: Sequence[Tensor]) -> list[Tensor]:
    """Logarithms of the determinants of square float32 matrices, scalars with gradients.

    On a GPU one that is not positive gives NaN, as finding out would hold up the device in every step: the update is
    skipped, and `check_determinants` says why.

    Raises:
        InputError: one is not positive, on a CPU; names the flow.
    """
    signs, log_abs = _log_abs_determinants(matrices)
    if _is_on_host(signs):
        _refuse_not_positive(signs, log_abs)
    return list(torch.where(signs > 0, log_abs, torch.nan).unbind())


@torch.no_grad()
def check_determinants(matrices: Sequence[Tensor]) -> None:
    """Raise InputError if a determinant of these matrices is not positive; names the flow. Waits for the device."""
    _refuse_not_positive(*_log_abs_determinants(matrices))


def _log_abs_determinants(matrices: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Signs of the determinants and logarithms of their absolute values, (n,) each."""
    size = max(len(matrix) for matrix in matrices)
    with torch.autocast(matrices[0].device.type, enabled=False):
        # Filled up with an identity, which leaves the determinant as it is, all go into one call.
        identity = torch.eye(size, device=matrices[0].device)
        filled = [torch.block_diag(matrix, identity[len(matrix) :, len(matrix) :]) for matrix in matrices]
        return torch.linalg.slogdet(torch.stack(filled))


def _is_on_host(values: Tensor) -> bool:
    """Whether reading values waits for no device."""
    return values.device.type == "cpu"


def _refuse_not_positive(signs: Tensor, log_abs: Tensor) -> None:
    for flow, sign in enumerate(torch.where(log_abs.isnan(), log_abs, signs).tolist()):
        if not sign > 0:
            kind = {0: "zero", -1: "negative"}.get(sign, "not a number")
            raise InputError(
                f"the determinant of flow {flow}'s 1x1 convolution has become {kind}; "
                "resume from an earlier checkpoint with a lower --learning-rate, or with --grad-clip-thresh"
            )
