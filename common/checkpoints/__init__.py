"""Checkpoints: our format, safe unpickling, and loading by content."""

from common.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
