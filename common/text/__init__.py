"""Text to symbol ids: front end, cleaners that write out numbers and abbreviations, symbol sets, phones."""

from common.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
