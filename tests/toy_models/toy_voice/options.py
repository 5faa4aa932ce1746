"""Options of the toy voice."""

from dataclasses import dataclass
from pathlib import Path

from common.options import group, option
from common.text.options import TextOptions, text_config
from common.training.optim import Optimization
from common.training.options import RunOptions
from common.training.settings import TrainingRequest, TrainingSetup

RECIPE = RunOptions(
    epochs=2, batch_size=2, optimizer="adam", learning_rate=0.01, weight_decay=0.0, grad_clip_thresh=float("inf")
)


@dataclass(frozen=True)
class TrainingOptions:
    """What the toy voice's training takes."""

    text: TextOptions = group(TextOptions)
    frames: int = option(3, "of each symbol")
    dataset_path: Path = Path()

    @property
    def unknown_symbols(self) -> str:
        return self.text.unknown_symbols


@dataclass(frozen=True)
class InferenceOptions:
    """What its inference takes."""

    toy_pace: float = option(1.0, "speed")


def set_up(options: TrainingOptions, request: TrainingRequest) -> TrainingSetup:
    """What the options mean."""
    optimization = Optimization(schedule=lambda iteration, epoch, n_steps: request.run.learning_rate)
    return TrainingSetup(options, request.mels(), text_config(options.text), optimization)
