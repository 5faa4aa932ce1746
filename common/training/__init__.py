"""Training: objective, engine, trainer, optimizers, EMA, gradient reducer, TensorBoard."""

from common.training.engine import Engine, EngineOptions
from common.training.objective import Example, LogStyle, Networks, Objective, Phase, Term
from common.training.optim import Optimization, build_optimizer
from common.training.settings import Recipe, TrainingSetup
from common.training.trainer import RunOptions, Trainer

__all__ = [
    "Engine",
    "EngineOptions",
    "Example",
    "LogStyle",
    "Networks",
    "Objective",
    "Optimization",
    "Phase",
    "Recipe",
    "RunOptions",
    "Term",
    "Trainer",
    "TrainingSetup",
    "build_optimizer",
]
