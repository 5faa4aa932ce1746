"""What a model's package says of a training run: its published recipe, and its options parsed once."""

from dataclasses import dataclass
from typing import Any

from common.config import AudioConfig, TextConfig
from common.training.optim import Optimization


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
    adaptable: tuple[str, ...] = ()  # fields of AudioConfig in which a checkpoint to resume from may differ
    notes: tuple[str, ...] = ()  # lines to print, on what was chosen
