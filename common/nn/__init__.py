"""Network parts that several models use: layers, weight norm, discriminators, CTC, and measures of an alignment."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
