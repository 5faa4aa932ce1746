"""Checkpoints of every kind that training and inference take, recognized by content."""

from collections.abc import Callable
from pathlib import Path

from common.checkpoints.checkpoint import (
    FORMAT_VERSION,
    Checkpoint,
    Stripped,
    read_payload,
    read_published,
    saved_checkpoints,
)
from common.checkpoints.layout import as_float32
from common.checkpoints.safetensors_file import is_own_safetensors, read_safetensors
from common.config import AudioConfig, TextConfig, from_plain
from common.errors import CheckpointError


def load_checkpoint(path: Path, *, training: bool = True) -> Checkpoint:
    """Read a checkpoint of ours, as ``.pt`` or safetensors, or of a published layout onto the CPU.

    ``training=False`` leaves out the training state, and files next to a published checkpoint that only training
    needs; weights are then read from the disk as they are used, so that a vocoder's discriminators cost no time.

    Raises:
        CheckpointError: the file is missing, damaged, holds anything but tensors and plain types, or is no
            checkpoint of a known layout.
    """
    if is_own_safetensors(path):
        return read_safetensors(path)
    payload = read_payload(path, on_demand=not training)
    if "format" not in payload:
        return read_published(payload, path=path, training=training)
    if payload["format"] != FORMAT_VERSION:
        raise CheckpointError(
            f"{path}: checkpoint format {payload['format']}, expected {FORMAT_VERSION}; a newer toolkit may read it"
        )
    try:
        config = payload["config"]
        text, stripped, networks = config["text"], payload.get("stripped"), payload["networks"]
        if stripped is not None:
            networks = {name: as_float32(state) for name, state in networks.items()}
        return Checkpoint(
            model=payload["model"],
            config=config["model"],
            audio=from_plain(AudioConfig, config["audio"], where=str(path)),
            text=None if text is None else from_plain(TextConfig, text, where=str(path)),
            networks=networks,
            ema=payload["ema"],
            training=payload["training"] if training else None,
            assumed=tuple(payload.get("assumed", ())),
            assumed_config=tuple(payload.get("assumed_config", ())),
            stripped=None if stripped is None else from_plain(Stripped, stripped, where=str(path)),
        )
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: damaged checkpoint, {error!r}") from error


def load_last_checkpoint(folder: Path, model: str, *, warn: Callable[[str], None]) -> tuple[Path, Checkpoint] | None:
    """The newest checkpoint that can be read, or None where there is none.

    ``warn(line)`` is called for each newer one that cannot be read.

    Raises:
        CheckpointError: there are checkpoints, and none can be read.
    """
    paths = saved_checkpoints(folder, model)
    for path in reversed(paths):
        try:
            return path, load_checkpoint(path)
        except CheckpointError as error:
            warn(f"{error}; trying the one before it")
    if paths:
        raise CheckpointError(f"{folder}: none of {len(paths)} checkpoints of {model} can be read")
    return None
