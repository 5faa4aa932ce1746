"""Training: objectives, engine, trainer, optimizers, EMA, TensorBoard."""

from .adversarial import AdversarialObjective as AdversarialObjective
from .engine import Engine as Engine
from .objective import (
    Example as Example,
    LogStyle as LogStyle,
    Networks as Networks,
    Objective as Objective,
    Phase as Phase,
    Term as Term,
    cut as cut,
    example_indices as example_indices,
)
from .optim import (
    Optimization as Optimization,
    Schedule as Schedule,
    exponential_schedule as exponential_schedule,
    inverse_sqrt_schedule as inverse_sqrt_schedule,
)
from .settings import TrainingRequest as TrainingRequest, TrainingSetup as TrainingSetup
from .trainer import Trainer as Trainer
from .verdict import Aligned as Aligned
