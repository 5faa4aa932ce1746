"""Training: objectives, engine, trainer, optimizers, EMA, TensorBoard."""
