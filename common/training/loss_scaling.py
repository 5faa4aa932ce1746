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

    def __init__(self, device: torch.device, *, enabled: bool) -> None:
        self._device = device
        self._enabled = enabled
        self._scales: dict[str, Tensor] = {}  # float32 scalars
        self._finite_since: dict[str, Tensor] = {}  # int64 scalars

    def scale(self, loss: Tensor, phase: str) -> Tensor:
        """The loss to call ``backward`` on."""
        if not self._enabled:
            return loss
        if phase not in self._scales:
            self._scales[phase] = torch.full((), _INITIAL, device=self._device)
            self._finite_since[phase] = torch.zeros((), dtype=torch.int64, device=self._device)
        return loss * self._scales[phase]

    def unscale(self, gradients: list[Tensor], phase: str) -> None:
        """Divide gradients by the scale, in place."""
        if self._enabled and gradients:
            torch._foreach_mul_(gradients, 1.0 / self._scales[phase])

    def update(self, phase: str, *, finite: Tensor) -> None:
        """Learn from an update's outcome, a boolean scalar on the device that stays there."""
        if not self._enabled:
            return
        scale, since = self._scales[phase], self._finite_since[phase]
        since.add_(1).mul_(finite)
        grown = torch.where(since % _GROWTH_INTERVAL == 0, (2 * scale).clamp(max=_LARGEST), scale)
        scale.copy_(torch.where(finite, grown, scale / 2))

    def state(self) -> dict[str, Any]:
        """Plain types for a checkpoint."""
        return {
            "scales": {phase: scale.item() for phase, scale in self._scales.items()},
            "finite_since": {phase: int(since) for phase, since in self._finite_since.items()},
        }

    def load(self, state: dict[str, Any]) -> None:
        """Restore what `state` gave."""
        for phase, scale in state.get("scales", {}).items():
            self._scales[phase] = torch.tensor(scale, dtype=torch.float32, device=self._device)
            self._finite_since[phase] = torch.tensor(state["finite_since"][phase], device=self._device)
