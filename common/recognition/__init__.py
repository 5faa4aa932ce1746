"""Speech to text: transcribing recordings, and error rates."""

from common.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
