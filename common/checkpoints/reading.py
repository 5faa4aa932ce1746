"""Reads our checkpoints and published ones, recognized by their content, without running code in them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor

from common.checkpoints.checkpoint import FORMAT_VERSION, SAFETENSORS_LAYOUT, Checkpoint, read_own, saved_checkpoints
from common.checkpoints.exported import METADATA_KEY, payload_of, read_description
from common.checkpoints.layout import published_state, with_state_dict
from common.errors import CheckpointError, reason, shown
from common.files import check_file
from common.registry import available_models, get_model
from common.torch_file import StoredObject, read_torch_file

_DAMAGES = (LookupError, TypeError, AttributeError, ValueError, RuntimeError)  # reading a damaged file may raise these


def file_format(path: Path) -> str:
    """Return ``safetensors``, ``onnx`` or ``torch`` by a file's first bytes; CheckpointError if there is none."""
    check_file(path, kind="checkpoint file", error=CheckpointError)
    with path.open("rb") as file:
        start = file.read(9)
    if start[8:] == b"{" and int.from_bytes(start[:8], "little") < path.stat().st_size:  # the header after its size
        return "safetensors"
    return "onnx" if start[:1] == b"\x08" else "torch"  # ONNX's version field


def read_payload(path: Path, *, on_demand: bool = False) -> dict[str, Any]:
    """Return the dict of plain types and tensors in a checkpoint file of any layout.

    ``on_demand`` maps the file into memory if its format allows it, so that tensors are read when they are used.
    Raises CheckpointError if the file is missing, damaged, or contains anything but a dict of tensors and plain types.
    """
    kind = file_format(path)
    if kind == "onnx":
        wanted = "give the checkpoint that it was exported from, or its safetensors"
        raise CheckpointError(f"{path}: ONNX files are for inference only; {wanted}")
    return _read_safetensors(path) if kind == "safetensors" else _read_pickled(path, on_demand=on_demand)


def _read_safetensors(path: Path) -> dict[str, Any]:
    """Return the weights in a safetensors file or, if it's ours, a checkpoint's dict."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            state = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  (not a mapping)
    except SafetensorError as error:
        raise CheckpointError(f"{path}: cannot be read, damaged or truncated ({error})") from error
    if METADATA_KEY not in metadata:
        return state
    description = read_description(metadata, where=path)
    return payload_of(description, {description["network"]: state}) | {"layout": SAFETENSORS_LAYOUT}


def _read_pickled(path: Path, *, on_demand: bool) -> dict[str, Any]:
    """Return a checkpoint's dict; the weights of a pickled network are under ``state_dict``.

    The network is the whole file, its entry ``model``, or its first entry that is a network.
    """
    payload = read_torch_file(path, wanted="a checkpoint from torch.save", mapped=on_demand, error=CheckpointError)
    if isinstance(payload, StoredObject):
        return {"state_dict": _stored_weights(payload)}
    if not isinstance(payload, dict):
        raise CheckpointError(f"{path}: holds a {type(payload).__name__}, expected a checkpoint's dict")
    networks = {key: value for key, value in payload.items() if isinstance(value, StoredObject)}
    rest = {key: value for key, value in payload.items() if key not in networks}
    if not networks or "state_dict" in rest:
        return rest
    return rest | {"state_dict": _stored_weights(networks.get("model") or next(iter(networks.values())))}


def _stored_weights(network: StoredObject, prefix: str = "") -> dict[str, Tensor]:
    """Return a pickled network's parameters and buffers as its ``state_dict()`` would."""
    state = network.state
    values = (state.get("_parameters") or {}) | (state.get("_buffers") or {})
    kept = values.keys() - set(state.get("_non_persistent_buffers_set") or ())
    weights = {prefix + name: one for name, one in values.items() if name in kept and isinstance(one, Tensor)}
    for name, child in (state.get("_modules") or {}).items():
        if isinstance(child, StoredObject):
            weights |= _stored_weights(child, f"{prefix}{name}.")
    return weights


def load_checkpoint(path: Path, *, training: bool = True) -> Checkpoint:
    """Read a checkpoint, ours (``.pt`` or safetensors) or published, to the CPU.

    ``training=False`` drops the training state, skips files that only training needs, and reads weights from disk when
    they're used, so that a vocoder's discriminators cost no time. Raises CheckpointError if the layout is unknown, or
    as `read_payload`.
    """
    payload = read_payload(path, on_demand=not training)
    if "format" not in payload:
        return read_published(payload, path=path, training=training)
    if payload["format"] != FORMAT_VERSION:
        found = shown(payload["format"])
        raise CheckpointError(f"{path}: checkpoint format {found}, expected {FORMAT_VERSION}; use a newer toolkit")
    try:
        return read_own(payload, training=training, where=str(path))
    except _DAMAGES as error:
        raise CheckpointError(f"{path}: a damaged checkpoint ({reason(error)})") from error


def read_published(payload: dict[str, Any], *, path: Path, training: bool) -> Checkpoint:
    """Read a checkpoint from another implementation; each model's package recognizes its own by their keys.

    Raises CheckpointError if none recognizes it, or if it's damaged.
    """
    payload = with_state_dict(payload)
    given = payload.get("state_dict")
    state = published_state(given) if isinstance(given, dict) else {}
    for name in available_models():
        read = get_model(name).find("published_checkpoints", "read_published")
        try:
            checkpoint = None if read is None else read(state, payload, path=path, training=training)
        except _DAMAGES as error:
            raise CheckpointError(f"{path}: a damaged checkpoint of {name} ({reason(error)})") from error
        if checkpoint is not None:
            return checkpoint
    raise CheckpointError(f"{path}: unknown checkpoint layout (its keys: {shown(list(payload))[1:-1]})")


def load_last_checkpoint(folder: Path, model: str, *, warn: Callable[[str], None]) -> tuple[Path, Checkpoint] | None:
    """Read the newest readable checkpoint; call ``warn(line)`` for unreadable ones. Return None if there are none.

    Raises CheckpointError if there are checkpoints but none can be read.
    """
    paths = saved_checkpoints(folder, model)
    for path in reversed(paths):
        try:
            return path, load_checkpoint(path)
        except CheckpointError as error:
            if path == paths[0]:
                n = len(paths)
                raise CheckpointError(f"{folder}: none of {n} checkpoints of {model} can be read: {error}") from error
            warn(f"{error}; trying the previous one")
    return None
