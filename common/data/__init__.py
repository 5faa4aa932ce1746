"""Training data: filelists, batches, samplers, and the features, recordings and texts of a list."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
