"""Jasper: speech to text with convolutions and connectionist temporal classification (arXiv:1904.03288)."""

from common.registry import ModelSpec

MODEL = ModelSpec(__name__, "Jasper", "recognizer")
