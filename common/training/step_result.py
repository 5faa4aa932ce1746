"""What one update did, and its figures' way from the device, which no launch waits for."""

from functools import cached_property

import torch
from torch import Tensor

Figure = tuple[str, str]  # what it is ("term", "grad_norm", "finite" or "step"), and its name


class StepResult:
    """What one update did; all values are over the global batch.

    Its figures (the properties) wait for the device until the update is done there: read those of one update after
    the next has been launched.
    """

    def __init__(
        self, iteration: int, figures: dict[Figure, Tensor], *, learning_rate: float, utterances: tuple[str, ...]
    ) -> None:
        """``figures`` are float64 scalars of one device; ``utterances`` are the names of this process's."""
        self.iteration = iteration  # of this update, from 1
        self.learning_rate = learning_rate
        self.utterances = utterances
        values = torch.stack(list(figures.values()))
        self._names = tuple(figures)
        self._values = values.to("cpu", non_blocking=True)  # into pinned memory
        self._arrived: torch.cuda.Event | None = None
        if values.is_cuda:
            self._arrived = torch.cuda.Event()
            self._arrived.record()

    @cached_property
    def figures(self) -> dict[str, dict[str, float]]:
        """All figures as numbers, by kind and name; waits for them."""
        if self._arrived is not None:
            self._arrived.synchronize()
        found: dict[str, dict[str, float]] = {}
        for (kind, name), value in zip(self._names, self._values.tolist()):
            found.setdefault(kind, {})[name] = value
        return found

    @property
    def terms(self) -> dict[str, float]:
        """Each term's mean."""
        return self.figures["term"]

    @property
    def grad_norms(self) -> dict[str, float]:
        """Phase -> norm before clipping."""
        return self.figures["grad_norm"]

    @property
    def n_frames(self) -> int:
        """Valid mel frames."""
        return int(self.figures["step"]["n_frames"])

    @property
    def skipped(self) -> tuple[str, ...]:
        """Phases whose update was skipped for a loss or gradient that is not finite."""
        return tuple(phase for phase, finite in self.figures["finite"].items() if not finite)

    @property
    def stop(self) -> bool:
        """Whether any process was asked to stop."""
        return self.figures["step"]["stops"] > 0

    @property
    def save(self) -> bool:
        """Whether any process asks for a checkpoint."""
        return self.figures["step"]["saves"] > 0
