"""Code that the models share: audio, text, the training engine, checkpoints and logs."""
