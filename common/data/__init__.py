"""Training data: filelists, batches, samplers, and the features of a list."""
