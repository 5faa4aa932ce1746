"""WaveGlow: a vocoder that turns Gaussian noise into sound through invertible flows (arXiv:1811.00002)."""

from common.registry import ModelSpec

MODEL = ModelSpec(__name__, "WaveGlow", "vocoder")
