"""Recordings as people have them become a corpus: any sound file and transcripts of many forms, wherever they lie."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
