"""Dynamic loss scaling for float16."""

from typing import Any

import torch
from torch import Tensor

_INITIAL = 2.0**16
_GROWTH_INTERVAL = 2000  # finite updates before the scale is doubled
_LARGEST = 2.0**24


class LossScaler:
    """Multiplies losses so that small float16 gradients do not vanish (Micikevicius et al., arXiv:1710.03740).

    Each phase has a scale of its own: halved when an update is not finite, doubled after many that are.
    """

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._scales: dict[str, float] = {}
        self._finite_since: dict[str, int] = {}

    def scale(self, loss: Tensor, phase: str) -> Tensor:
        """The loss to call ``backward`` on."""
        return loss * self._scales.setdefault(phase, _INITIAL) if self._enabled else loss

    def unscale(self, gradients: list[Tensor], phase: str) -> None:
        """Divide gradients by the scale, in place."""
        if self._enabled and gradients:
            torch._foreach_mul_(gradients, 1.0 / self._scales[phase])

    def update(self, phase: str, *, finite: bool) -> None:
        """Learn from an update's outcome."""
        if not self._enabled:
            return
        if not finite:
            self._scales[phase] /= 2
            self._finite_since[phase] = 0
            return
        self._finite_since[phase] = self._finite_since.get(phase, 0) + 1
        if self._finite_since[phase] % _GROWTH_INTERVAL == 0:
            self._scales[phase] = min(2 * self._scales[phase], _LARGEST)

    def state(self) -> dict[str, Any]:
        """Plain types for a checkpoint."""
        return {"scales": dict(self._scales), "finite_since": dict(self._finite_since)}

    def load(self, state: dict[str, Any]) -> None:
        """Restore what `state` gave."""
        self._scales = dict(state.get("scales", {}))
        self._finite_since = dict(state.get("finite_since", {}))
