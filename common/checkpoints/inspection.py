"""What a checkpoint is, as plain types: model, layout, architecture, contracts, training state, and storage."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.checkpoints.checkpoint import (
    OWN_LAYOUT,
    SAFETENSORS_LAYOUT,
    Checkpoint,
    PartialFileError,
    is_onnx,
    read_payload,
)
from common.checkpoints.exported import ExportedFile, open_exported
from common.checkpoints.layout import is_state, with_state_dict
from common.checkpoints.loading import check_fit, new_networks
from common.checkpoints.reading import load_checkpoint
from common.checkpoints.safetensors_file import is_own_safetensors, read_safetensors
from common.config import from_plain, to_plain
from common.errors import CheckpointError
from common.registry import get_model


def inspect_checkpoint(path: Path) -> tuple[Checkpoint, dict[str, Any]]:
    """A checkpoint of ours or of a published layout, or an exported file of ours, and all about it as
    `scripts/inspect_checkpoint.sh --json` has it.

    Raises:
        CheckpointError: it is none, damaged, another program's, or a part of one whose other file is not there.
    """
    if not (path.is_file() and is_onnx(path)):
        return _inspected(path, *_loaded(path), dtypes=_stored_dtypes(path))
    exported, checkpoint = open_exported(path)
    # Its network's name, whose weights the checkpoint does not have.
    checkpoint = replace(checkpoint, networks={exported.description["network"]: {}})
    return _inspected(path, checkpoint, None, **_facts_of_exported(exported))


def _facts_of_exported(exported: ExportedFile) -> dict[str, Any]:
    """Say what only an ONNX file has."""
    import onnx  # takes long to import

    said, graph = exported.description, (model := onnx.load(exported.path)).graph

    def type_of(number: int) -> str:
        return str(onnx.helper.tensor_dtype_to_np_dtype(number).name)

    def tensors(shapes: dict[str, Any], values: Iterable[Any]) -> dict[str, dict[str, Any]]:
        # of the graph the types alone, as it has made-up names for some sizes of outputs
        types = {one.name: type_of(one.type.tensor_type.elem_type) for one in values}
        return {name: {"shape": shape, "type": types[name]} for name, shape in shapes.items()}

    dtypes: Counter[str] = Counter()
    for tensor in graph.initializer:
        if (name := type_of(tensor.data_type)) not in ("int64", "bool"):  # which are no weights
            dtypes[name] += math.prod(tensor.dims)
    return {
        "layout": "onnx",
        "part": said["part"],
        "context_frames": said["context_frames"],
        "opset": next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx")),
        "dtypes": dict(dtypes),
        "inputs": tensors(said["inputs"], graph.input),
        "outputs": tensors(said["outputs"], graph.output),
    }


def _inspected(
    path: Path, checkpoint: Checkpoint, training: dict[str, Any] | None, **more: Any
) -> tuple[Checkpoint, dict[str, Any]]:
    """The checkpoint, and the facts that all files have, with ``more``."""
    spec = get_model(checkpoint.model)
    config = from_plain(spec.config, checkpoint.config, where=str(path))
    return checkpoint, {
        "file": str(path),
        "bytes": path.stat().st_size,
        "model": checkpoint.model,
        "role": spec.role,
        "layout": checkpoint.layout,
        "foreign": checkpoint.layout not in (OWN_LAYOUT, SAFETENSORS_LAYOUT),
        "stripped": None if checkpoint.stripped is None else to_plain(checkpoint.stripped),
        "config": to_plain(config),
        "assumed_config": list(checkpoint.assumed_config),
        "parameters": _parameters(checkpoint, where=str(path)),
        "audio": to_plain(checkpoint.audio),
        "assumed_audio": list(checkpoint.assumed),
        "text": None if checkpoint.text is None else to_plain(checkpoint.text),
        "ema": checkpoint.has_ema,
        "training": training,
        **more,
    }


def _loaded(path: Path) -> tuple[Checkpoint, dict[str, Any] | None]:
    """The checkpoint and its training state in short; why that cannot be read, where it cannot."""
    training: dict[str, Any] | None = None
    try:
        checkpoint = load_checkpoint(path)
    except PartialFileError as error:
        if error.main is None:
            raise
        return _loaded(error.main)
    except CheckpointError as error:
        checkpoint = load_checkpoint(path, training=False)
        training = {"unreadable": str(error)}
    check_fit(checkpoint, where=str(path))
    if (state := checkpoint.training) is not None:
        optimizers = {
            phase: {"settings": saved["settings"], "n_states": len(saved["states"])}
            for phase, saved in state["optimizers"].items()
        }
        training = {"epoch": state["epoch"], "iteration": state["iteration"], "optimizers": optimizers}
    return checkpoint, training


def _parameters(checkpoint: Checkpoint, *, where: str) -> dict[str, int]:
    """How many numbers each network trains."""
    networks = new_networks(checkpoint, where=where)
    return {name: sum(one.numel() for one in networks[name].parameters()) for name in checkpoint.networks}


def _stored_dtypes(path: Path) -> dict[str, int]:
    """How many weights the file stores in each type of floating-point number."""
    if is_own_safetensors(path):
        states = [*read_safetensors(path).networks.values()]
    elif "format" in (payload := read_payload(path, on_demand=True)):
        states = [*payload["networks"].values(), *(payload["ema"] or {}).values()]
    else:
        states = [value for value in with_state_dict(payload).values() if is_state(value)]
    counts: Counter[str] = Counter()
    for value in (one for state in states for one in state.values() if one.is_floating_point()):
        counts[str(value.dtype).removeprefix("torch.")] += value.numel()
    return dict(counts)
