"""A voice whose decoder takes a number of steps: flow matching (Matcha-TTS, arXiv:2309.03199) in small."""

from common.registry import ModelSpec

MODEL = ModelSpec(__name__, "Toy-Flow", "generator")
