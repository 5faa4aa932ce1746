"""Jasper: speech to text by convolutions and connectionist temporal classification (arXiv:1904.03288)."""

from common.registry import ModelSpec

MODEL = ModelSpec(__name__, "Jasper", "recognizer")
