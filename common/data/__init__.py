"""Training data: filelists, batches, samplers, and the features, recordings and texts of a list."""
