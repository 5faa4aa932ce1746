"""Training: objective, engine, trainer, optimizers, averaged weights, gradient reducer, TensorBoard."""
