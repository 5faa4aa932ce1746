"""Recordings as people have them become a corpus: any sound file and transcripts of many forms, wherever they lie."""

from common.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
