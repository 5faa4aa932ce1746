"""Text to symbol ids: front end, cleaners that write out numbers and abbreviations, symbol sets, phones."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
