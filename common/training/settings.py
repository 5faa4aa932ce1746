"""What a training run is told: a model's published recipe, its options parsed once, and how long and how to run."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.config import AudioConfig, TextConfig
from common.training.optim import Optimization
from common.training.selection import SelectionMetric


@dataclass(frozen=True)
class Recipe:
    """The published training recipe of a model: defaults of the options that all models share, by their names."""

    epochs: int
    batch_size: int  # utterances a process and micro-batch
    optimizer: str
    learning_rate: float
    weight_decay: float
    grad_clip_thresh: float
    gradient_accumulation_steps: int = 1
    ema_decay: float = 0.0
    epochs_per_checkpoint: int = 50
    validation_interval: int = 1  # epochs
    samples_interval: int | None = None  # epochs between plots and sound; None: with each validation
    keep_best: str = "loss"  # figure of validation that says which checkpoint is the best
    keep_milestones: tuple[int, ...] | None = None  # epochs whose checkpoints stay, with the best and the last few


@dataclass(frozen=True)
class TrainingSetup:
    """What ``TrainingSpec.parse`` makes of the parsed arguments; nothing else reads them."""

    options: Any  # the package's own frozen dataclass
    audio: AudioConfig
    text: TextConfig | None  # None: the model reads no text
    optimization: Optimization
    same_shapes: bool = False  # whether all batches of training have one shape, as segments of one size do
    recordable: bool = False  # whether --cuda-graphs can record updates
    adaptable: tuple[str, ...] = ()  # fields of AudioConfig in which a checkpoint to resume from may differ
    notes: tuple[str, ...] = ()  # lines to print, on what was chosen


@dataclass(frozen=True)
class RunOptions:
    """How long a run lasts, how it is cut into batches, and what it leaves behind."""

    output: Path
    epochs: int
    batch_size: int  # utterances a process and micro-batch
    accumulation: int = 1  # micro-batches an update
    seed: int = 1234
    num_workers: int = 0  # loader processes
    epochs_per_checkpoint: int = 50
    steps_per_checkpoint: int = 0  # 0: none by number of updates
    minutes_per_checkpoint: float = 0.0  # 0: none by the clock
    keep_checkpoints: int | None = None  # of finished epochs, the last so many; None: all
    keep_best: SelectionMetric = field(default_factory=SelectionMetric)  # whose best checkpoint stays as well
    milestones: tuple[int, ...] = ()  # epochs whose checkpoints stay as well
    save_inference: str | None = None  # also write what inference needs alone, in this one of `checkpoints.DTYPES`
    validation_interval: int = 1  # epochs
    samples_interval: int | None = None  # epochs between plots and sound; None: with each validation
    validation_steps: int = 0  # updates between further validations, within epochs; 0: none
    epochs_this_job: int = 0  # epochs to train before stopping; 0: all


def inference_paths(output: Path, model: str) -> tuple[Path, Path]:
    """Where the weights of the last checkpoint go that inference needs, and those of the best."""
    return output / f"{model}_inference.pt", output / f"{model}_inference_best.pt"
