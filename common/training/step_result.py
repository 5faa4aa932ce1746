"""What one update did, and its figures' way from the device, which no launch waits for."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

Figure = tuple[str, str]  # what it is ("term", "grad_norm", "finite" or "step"), and its name


class Fetch:
    """Scalars on their way from the device, by name; they are waited for when they are first read."""

    def __init__(self, figures: dict[Figure, Tensor]) -> None:
        """``figures`` are float64 scalars of one device."""
        values = torch.stack(list(figures.values()))
        self._names = tuple(figures)
        self._values = values.to("cpu", non_blocking=True)  # into pinned memory
        self._arrived: torch.cuda.Event | None = None
        if values.is_cuda:
            self._arrived = torch.cuda.Event()
            self._arrived.record()

    @cached_property
    def values(self) -> dict[Figure, float]:
        """The figures as numbers."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return dict(zip(self._names, self._values.tolist()))


@dataclass(frozen=True)
class StepResult:
    """What one update did; all values are over the global batch.

    Its figures (the properties) wait for the device until the update is done there: read those of one update after
    the next has been launched.
    """

    iteration: int  # of this update, from 1
    learning_rates: dict[str, float]  # phase -> rate
    utterances: tuple[str, ...]  # names of this process's
    fetch: Fetch

    def _of(self, kind: str) -> dict[str, float]:
        return {name: value for (its_kind, name), value in self.fetch.values.items() if its_kind == kind}

    @property
    def terms(self) -> dict[str, float]:
        """Each term's mean."""
        return self._of("term")

    @property
    def grad_norms(self) -> dict[str, float]:
        """Phase -> norm before clipping."""
        return self._of("grad_norm")

    @property
    def n_frames(self) -> int:
        """Valid mel frames."""
        return int(self._of("step")["n_frames"])

    @property
    def skipped(self) -> tuple[str, ...]:
        """Phases whose update was skipped for a loss or gradient that is not finite."""
        return tuple(phase for phase, finite in self._of("finite").items() if not finite)

    @property
    def stop(self) -> bool:
        """Whether any process was asked to stop."""
        return self._of("step")["stops"] > 0

    @property
    def save(self) -> bool:
        """Whether any process asks for a checkpoint."""
        return self._of("step")["saves"] > 0
