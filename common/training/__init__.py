"""Training: objectives, engine, trainer, optimizers, EMA, TensorBoard."""

from common.training.adversarial import AdversarialObjective
from common.training.engine import Engine, EngineOptions, build_engine
from common.training.objective import Example, LogStyle, Networks, Objective, Phase, Term, cut, shown
from common.training.optim import EpochPolicy, Optimization, Schedule, exponential_schedule, inverse_sqrt_schedule
from common.training.settings import Recipe, TrainingSetup
from common.training.trainer import Trainer
