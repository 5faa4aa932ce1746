"""Recordings in and sound out: wav files, mel-spectrograms, pitch and its statistics, Griffin-Lim, the denoiser."""

from common.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
