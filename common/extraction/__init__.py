"""Features of a corpus: mel-spectrograms, durations and pitch of many recordings."""

from common.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
