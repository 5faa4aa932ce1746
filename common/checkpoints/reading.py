"""Checkpoints of every kind that training and inference take, recognized by content."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.checkpoints.checkpoint import FORMAT_VERSION, Checkpoint, read_payload, saved_checkpoints
from common.checkpoints.fields import OwnFields, check_checkpoint, read_fields
from common.checkpoints.layout import as_float32, with_state_dict
from common.checkpoints.safetensors_file import is_own_safetensors, read_safetensors
from common.errors import CheckpointError, reason, shown
from common.registry import available_models, get_model


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
    if type(version := payload["format"]) is not int or version != FORMAT_VERSION:
        newer = "; a newer toolkit may read it" if isinstance(version, int) else ""
        raise CheckpointError(f"{path}: checkpoint format {shown(version)}, expected {FORMAT_VERSION}{newer}")
    given = payload if training else payload | {"training": None}
    fields: OwnFields = read_fields(OwnFields, given, where=str(path))
    checkpoint = Checkpoint(
        model=fields.model,
        config=fields.config.model,
        audio=fields.config.audio,
        text=fields.config.text,
        networks=fields.networks,
        ema=fields.ema,
        training=fields.training,
        assumed=fields.assumed,
        assumed_config=fields.assumed_config,
        stripped=fields.stripped,
    )
    check_checkpoint(checkpoint, where=str(path))
    if checkpoint.stripped is not None:
        networks = {name: as_float32(state) for name, state in checkpoint.networks.items()}
        return replace(checkpoint, networks=networks)
    return checkpoint


def read_published(payload: dict[str, Any], *, path: Path, training: bool) -> Checkpoint:
    """A checkpoint of another implementation; each model's package recognizes its own by their keys.

    Raises:
        CheckpointError: it is of none, damaged, or a part of one (`PartialFileError`).
    """
    payload = with_state_dict(payload)
    for name in available_models():
        read = get_model(name).read_published
        try:
            checkpoint = read and read(payload, path=path, training=training)
        except (LookupError, TypeError, AttributeError, ValueError, RuntimeError) as error:
            raise CheckpointError(f"{path}: a damaged checkpoint of {name} ({reason(error)})") from error
        if checkpoint is not None:
            return check_checkpoint(checkpoint, where=str(path))
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
