"""Checkpoints of other implementations: recognised by their keys, and read into ours, one reader a model."""

from pathlib import Path
from typing import Any

from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.layout import without_prefix
from common.errors import CheckpointError
from common.foreign import fastpitch, hifigan, jasper, tacotron2, waveglow

_READERS = {
    "FastPitch": fastpitch.read,
    "Tacotron 2": tacotron2.read,
    "WaveGlow": waveglow.read,
    "Jasper": jasper.read,
}


def read_foreign(payload: dict[str, Any], *, path: Path, training: bool = True) -> Checkpoint | None:
    """A checkpoint of a published layout as ours, or None for an unknown one.

    ``path`` is named in errors, and beside it lies what a layout keeps in files of its own; ``training=False``
    leaves out what only training needs.

    Raises:
        CheckpointError: the layout is known, but the checkpoint is damaged or incomplete, or no model of its own.
    """
    layout = _recognise(payload)
    if layout is None:
        return None
    try:
        if layout == "HiFi-GAN":
            return hifigan.read(payload, path=path, training=training)
        if layout == "HiFi-GAN's discriminators":
            raise hifigan.not_a_generator(path)
        return _READERS[layout](payload, training=training)
    except (LookupError, TypeError, AttributeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: a damaged checkpoint of {layout} ({error!r})") from error


def _recognise(payload: dict[str, Any]) -> str | None:
    """Name of the layout, from keys that no other one has."""
    if hifigan.generator_state(payload) is not None:
        return "HiFi-GAN"
    if isinstance(payload.get("mpd"), dict) and isinstance(payload.get("msd"), dict):
        return "HiFi-GAN's discriminators"
    state = payload.get("state_dict")
    if not isinstance(state, dict):
        return None
    keys = set(without_prefix(state))
    if {"encoder.word_emb.weight", "duration_predictor.fc.weight"} <= keys:
        return "FastPitch"
    if "decoder.attention_rnn.weight_ih" in keys:
        return "Tacotron 2"
    if "convinv.0.conv.weight" in keys:
        return "WaveGlow"
    if any(key in keys for key in ("encoder.layers.0.conv.0.weight", "jasper_encoder.encoder.0.conv.0.weight")):
        return "Jasper"
    return None
