"""Harmonic: a vocoder of given harmonics and noise, whose small network learns in minutes on a CPU."""

from common.registry import ModelSpec

MODEL = ModelSpec(__name__, "Harmonic", "vocoder", has_noise=False)
