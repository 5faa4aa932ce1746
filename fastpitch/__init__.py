"""FastPitch: parallel text-to-mel synthesis with explicit duration and pitch (arXiv:2006.06873)."""

from common.registry import ModelSpec

MODEL = ModelSpec(
    __name__,
    "FastPitch",
    "generator",
    phrase_columns=("pitch", "duration"),
    recordable=("encode", "add_pitch", "decode_frames"),
    scriptable=True,
    starts_from_checkpoint=True,
)
