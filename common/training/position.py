"""The position of a training run: epoch and update, with running sums for the epoch's averages."""

from dataclasses import dataclass, field, fields
from typing import Any

from common.data.loader import GlobalBatchSampler
from common.training.engine import StepResult


@dataclass
class Position:
    """Epoch and update of a run, with running sums for the current epoch's averages."""

    epoch: int = 1
    steps_done: int = 0  # updates of this epoch
    sums: dict[str, float] = field(default_factory=dict)
    frames: int = 0
    seconds: float = 0.0
    skipped: int = 0

    def add(self, result: StepResult, loss: float, seconds: float) -> None:
        """Count one update with its total loss and time."""
        self.frames += result.n_frames
        self.seconds += seconds
        self.skipped += bool(result.skipped)
        if not result.skipped:
            for name, value in (result.terms | {"loss": loss}).items():
                self.sums[name] = self.sums.get(name, 0.0) + value

    @property
    def means(self) -> dict[str, float]:
        """The mean of each term over this epoch's updates that were not skipped."""
        n_applied = max(1, self.steps_done - self.skipped)
        return {name: total / n_applied for name, total in self.sums.items()}


def resumed_position(state: dict[str, Any], sampler: GlobalBatchSampler) -> Position:
    """Return a checkpoint's position; if the global batch has changed, an unfinished epoch starts over."""
    steps = state.get("steps_done")
    if steps is None or steps * state["global_batch"] >= sampler.steps_per_epoch * sampler.global_batch:
        return Position(epoch=state["epoch"] + 1)  # the epoch is complete, as always in other programs' checkpoints
    if state["global_batch"] != sampler.global_batch:
        return Position(epoch=state["epoch"])
    return Position(**{one.name: state[one.name] for one in fields(Position)})
