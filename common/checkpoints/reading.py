"""Checkpoints of every kind that training and inference take, recognized by content."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.checkpoints.checkpoint import (
    FORMAT_VERSION,
    Checkpoint,
    Stripped,
    check_configs,
    read_configs,
    read_payload,
    saved_checkpoints,
)
from common.checkpoints.layout import as_float32, published_state, with_state_dict
from common.checkpoints.safetensors_file import is_own_safetensors, read_safetensors
from common.errors import CheckpointError, reason, shown
from common.registry import available_models, get_model

_DAMAGES = (LookupError, TypeError, AttributeError, ValueError, RuntimeError)  # what reading a damaged file raises


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
        found = shown(payload["format"])
        raise CheckpointError(f"{path}: checkpoint format {found}, expected {FORMAT_VERSION}; a newer toolkit reads it")
    try:
        return _read_own(payload, training=training, where=str(path))
    except _DAMAGES as error:
        raise CheckpointError(f"{path}: a damaged checkpoint ({reason(error)})") from error


def _read_own(payload: dict[str, Any], *, training: bool, where: str) -> Checkpoint:
    stripped, networks = payload.get("stripped"), payload["networks"]
    if stripped is not None:
        stripped = Stripped(**stripped)
        networks = {name: as_float32(state) for name, state in networks.items()}
    state = payload["training"] if training else None
    return read_configs(payload, networks=networks, ema=payload["ema"], training=state, stripped=stripped, where=where)


def read_published(payload: dict[str, Any], *, path: Path, training: bool) -> Checkpoint:
    """A checkpoint of another implementation; each model's package recognizes its own by their keys.

    Raises:
        CheckpointError: it is of none, damaged, or a part of one (`PartialFileError`).
    """
    payload = with_state_dict(payload)
    given = payload.get("state_dict")
    state = published_state(given) if isinstance(given, dict) else {}
    for name in available_models():
        read = get_model(name).read_published
        try:
            checkpoint = read and read(state, payload, path=path, training=training)
        except _DAMAGES as error:
            raise CheckpointError(f"{path}: a damaged checkpoint of {name} ({reason(error)})") from error
        if checkpoint is not None:
            return check_configs(checkpoint, where=str(path))
    raise CheckpointError(f"{path}: a checkpoint of no known layout (its keys: {shown(list(payload))[1:-1]})")


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
            if path == paths[0]:
                n = len(paths)
                raise CheckpointError(f"{folder}: none of {n} checkpoints of {model} can be read: {error}") from error
            warn(f"{error}; trying the one before it")
    return None
