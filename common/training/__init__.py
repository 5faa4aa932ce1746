"""Training: objectives, engine, trainer, optimizers, EMA, TensorBoard."""

from common.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
