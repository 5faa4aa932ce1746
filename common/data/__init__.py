"""Training data: filelists, batches, samplers, and the features, recordings and texts of a list."""

from common.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
