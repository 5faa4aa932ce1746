"""Speech synthesis: voices that speak texts, vocoders, copy synthesis, and their measuring and acceleration."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
