"""Harmonic: a vocoder that filters harmonics and noise; its small network trains in minutes on a CPU."""

from common.registry import ModelSpec

MODEL = ModelSpec(__name__, "Harmonic", "vocoder", has_noise=False)
