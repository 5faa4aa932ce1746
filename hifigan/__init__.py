"""HiFi-GAN: a vocoder trained against multi-period and multi-scale discriminators (arXiv:2010.05646)."""

from common.registry import ModelSpec

MODEL = ModelSpec(__name__, "HiFi-GAN", "vocoder", scriptable=True)
