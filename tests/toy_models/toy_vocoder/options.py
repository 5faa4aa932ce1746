"""Options of the toy vocoder."""

from dataclasses import dataclass
from pathlib import Path

from common.options import option
from common.training.optim import Optimization
from common.training.options import RunOptions
from common.training.settings import TrainingRequest, TrainingSetup

RECIPE = RunOptions(
    epochs=2, batch_size=2, optimizer="adam", learning_rate=0.01, weight_decay=0.0, grad_clip_thresh=float("inf")
)


@dataclass(frozen=True)
class TrainingOptions:
    """What the toy vocoder's training takes."""

    toy_channels: int = option(8, "width of the network")
    segment_frames: int = option(16, "length of a segment")
    dataset_path: Path = Path()
    seed: int = 0


@dataclass(frozen=True)
class InferenceOptions:
    """What its inference takes."""

    toy_gain: float = option(1.0, "loudness")


def set_up(options: TrainingOptions, request: TrainingRequest) -> TrainingSetup:
    """What the options mean."""
    run = request.run
    optimization = Optimization(schedule=lambda iteration, epoch, n_steps: run.learning_rate)
    return TrainingSetup(options, request.mels(), None, optimization, same_shapes=True)
