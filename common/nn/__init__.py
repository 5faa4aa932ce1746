"""Network parts that several models use: layers, weight norm, discriminators, CTC, and measures of an alignment."""

from common.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
