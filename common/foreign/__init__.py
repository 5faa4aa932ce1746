"""Checkpoints of other implementations: recognised by their keys, and read into ours, one reader a model."""

from pathlib import Path
from typing import Any

from common.checkpoint import Checkpoint
from common.errors import CheckpointError
from common.foreign import fastpitch, hifigan, jasper, tacotron2, waveglow
from common.foreign.layout import without_prefix


def read_foreign(payload: dict[str, Any], *, path: Path, training: bool = True) -> Checkpoint | None:
    """A checkpoint of a published layout as ours, or None for an unknown one.

    ``path`` is named in errors, and beside it lies what a layout keeps in files of its own; ``training=False``
    leaves out what only training needs.

    Raises:
        CheckpointError: the layout is known but not read here, or the checkpoint is damaged or incomplete.
    """
    layout = _recognise(payload)
    if layout is None:
        return None
    try:
        if layout == "FastPitch 1.0":
            return fastpitch.read(payload, training=training)
        if layout == "Tacotron 2":
            return tacotron2.read(payload, training=training)
        if layout == "HiFi-GAN":
            return hifigan.read(payload, path=path, training=training)
        if layout == "WaveGlow":
            return waveglow.read(payload, training=training)
        if layout == "Jasper":
            return jasper.read(payload, training=training)
        if layout == "HiFi-GAN's discriminators":
            raise hifigan.not_a_generator(path)
    except (LookupError, TypeError, AttributeError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: a damaged checkpoint of {layout} ({error!r})") from error
    raise CheckpointError(
        f"{path}: a checkpoint of {layout}, which this version cannot read; "
        "expected FastPitch 1.0, Tacotron 2, HiFi-GAN, WaveGlow or Jasper"
    )


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
        return "FastPitch 1.1" if any(key.startswith("attention.") for key in keys) else "FastPitch 1.0"
    if "decoder.attention_rnn.weight_ih" in keys:
        return "Tacotron 2"
    if "convinv.0.conv.weight" in keys:
        return "WaveGlow"
    if any(key in keys for key in ("encoder.layers.0.conv.0.weight", "jasper_encoder.encoder.0.conv.0.weight")):
        return "Jasper"
    return None
