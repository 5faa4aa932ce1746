"""Tacotron 2: text to mel-spectrogram, one frame at a time, with attention."""

from common.registry import ModelSpec

MODEL = ModelSpec(__name__, "Tacotron2", "generator", is_teacher=True, compilable=False)
