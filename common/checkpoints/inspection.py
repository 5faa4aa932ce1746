"""What a checkpoint is, as plain types: model, layout, architecture, contracts, training state, and storage."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

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


@dataclass(frozen=True)
class OnnxGraph:
    """What an ONNX file takes and gives: name -> shape (names of dimensions, or sizes) and type of number."""

    inputs: dict[str, dict[str, Any]]
    outputs: dict[str, dict[str, Any]]
    opset: int
    dtypes: dict[str, int]  # how many weights are stored in each type; whole numbers of 64 bits are no weights


def read_onnx_graph(path: Path) -> OnnxGraph:
    """The inputs, outputs and weights of an ONNX file."""
    import onnx  # takes long to import

    model = onnx.load(path, load_external_data=False)

    def type_of(number: int) -> str:
        return str(onnx.helper.tensor_dtype_to_np_dtype(number).name)

    def described(values: Iterable[Any]) -> dict[str, dict[str, Any]]:
        kinds = {value.name: value.type.tensor_type for value in values}
        return {
            name: {
                "shape": [size.dim_param or size.dim_value for size in kind.shape.dim],
                "type": type_of(kind.elem_type),
            }
            for name, kind in kinds.items()
        }

    counts: Counter[str] = Counter()
    for tensor in model.graph.initializer:
        if (name := type_of(tensor.data_type)) not in ("int64", "bool"):
            counts[name] += math.prod(tensor.dims)
    opset = next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    return OnnxGraph(described(model.graph.input), described(model.graph.output), opset, dict(counts))


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
    said, graph = exported.description, read_onnx_graph(exported.path)

    def tensors(name: str, found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        # of the graph the types alone, as it has made-up names for some sizes of outputs
        return {key: {"shape": shape, "type": found[key]["type"]} for key, shape in said[name].items()}

    return {
        "layout": "onnx",
        "part": said["part"],
        "context_frames": said["context_frames"],
        "opset": graph.opset,
        "dtypes": graph.dtypes,
        "inputs": tensors("inputs", graph.inputs),
        "outputs": tensors("outputs", graph.outputs),
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
    try:
        checkpoint = load_checkpoint(path)
    except PartialFileError as error:
        if error.main is None:
            raise
        return _loaded(error.main)
    except CheckpointError as error:
        try:
            checkpoint = load_checkpoint(path, training=False)
        except CheckpointError:
            raise error from None
        check_fit(checkpoint, where=str(path))
        return checkpoint, {"unreadable": str(error)}
    check_fit(checkpoint, where=str(path))
    state = checkpoint.training
    if state is None:
        return checkpoint, None
    optimizers = {
        phase: {"settings": saved["settings"], "n_states": len(saved["states"])}
        for phase, saved in state["optimizers"].items()
    }
    return checkpoint, {"epoch": state["epoch"], "iteration": state["iteration"], "optimizers": optimizers}


def _parameters(checkpoint: Checkpoint, *, where: str) -> dict[str, int]:
    """How many numbers each network trains."""
    networks = new_networks(checkpoint, where=where)
    return {name: sum(one.numel() for one in networks[name].parameters()) for name in checkpoint.networks}


def _stored_dtypes(path: Path) -> dict[str, int]:
    """How many weights the file stores in each type of floating-point number."""
    if is_own_safetensors(path):
        return _count_dtypes(read_safetensors(path).networks.values())
    payload = read_payload(path, on_demand=True)
    if "format" in payload:
        states = [*payload["networks"].values(), *(payload["ema"] or {}).values()]
    else:
        states = [value for value in with_state_dict(payload).values() if is_state(value)]
    return _count_dtypes(states)


def _count_dtypes(states: Iterable[dict[str, Tensor]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for state in states:
        for value in state.values():
            if value.is_floating_point():
                counts[str(value.dtype).removeprefix("torch.")] += value.numel()
    return dict(counts)
