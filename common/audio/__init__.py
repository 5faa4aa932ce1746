"""Recordings in and sound out: wav files, mel-spectrograms, pitch and its statistics, Griffin-Lim, the denoiser."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
