"""How far a run has come."""

from dataclasses import dataclass, field, fields
from typing import Any

from common.training.step_result import StepResult


@dataclass
class Position:
    """Where the run stands, with the sums that the current epoch's averages need."""

    epoch: int = 1
    steps_done: int = 0  # updates of this epoch; the rest follows when their figures are there
    sums: dict[str, float] = field(default_factory=dict)
    frames: int = 0
    seconds: float = 0.0
    skipped: int = 0

    def add(self, result: StepResult, loss: float, seconds: float) -> None:
        """Count one update of the epoch, whose total loss and time are given."""
        self.frames += result.n_frames
        self.seconds += seconds
        self.skipped += bool(result.skipped)
        if not result.skipped:
            for name, value in (result.terms | {"loss": loss}).items():
                self.sums[name] = self.sums.get(name, 0.0) + value

    def means(self) -> dict[str, float]:
        """Averages over the updates of the epoch that were not skipped."""
        counted = max(1, self.steps_done - self.skipped)
        return {name: total / counted for name, total in self.sums.items()}


def resumed_position(state: dict[str, Any], *, steps_per_epoch: int, global_batch: int) -> Position:
    """Where a checkpoint's run stood, in updates of ``global_batch`` utterances.

    ``state`` is a `common.checkpoints.fields.TrainingState` as plain types.
    """
    steps = state.get("steps_done")
    if steps is None or (done := steps * state["global_batch"]) >= steps_per_epoch * global_batch:
        return Position(epoch=state["epoch"] + 1)  # it had finished the epoch, as other programs' checkpoints have
    saved = {one.name: state[one.name] for one in fields(Position)}
    return Position(**saved | {"steps_done": done // global_batch, "sums": dict(state["sums"])})
