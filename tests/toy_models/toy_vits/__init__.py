"""A voice that goes from text to sound in one network, as VITS does (arXiv:2106.06103), in small."""

from common.registry import ModelSpec

MODEL = ModelSpec(__name__, "Toy-VITS", "generator", makes_wave=True)
