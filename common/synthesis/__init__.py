"""Speech synthesis: voices that speak texts, vocoders, copy synthesis, and their measuring and acceleration."""

from common.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
