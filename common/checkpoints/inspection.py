"""Describe a checkpoint in plain types: model, layout, architecture, audio, text, and training state."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from common.checkpoints.checkpoint import OWN_LAYOUT, SAFETENSORS_LAYOUT
from common.checkpoints.exported import open_exported
from common.checkpoints.loading import check_fit, new_networks
from common.checkpoints.reading import file_format, load_checkpoint
from common.config import to_plain
from common.registry import get_model


def inspect_checkpoint(path: Path) -> dict[str, Any]:
    """Return what `scripts/inspect_checkpoint.sh --json` prints for a checkpoint or an exported file.

    Raises CheckpointError for other files, damaged ones, and those of other programs.
    """
    more: dict[str, Any] = {}
    if file_format(path) == "onnx":
        exported, checkpoint = open_exported(path)
        said = exported.description
        more |= {"layout": "onnx", "part": said["part"], "context_frames": said["context_frames"]}
        more |= {name: {key: {"shape": shape} for key, shape in said[name].items()} for name in ("inputs", "outputs")}
        checkpoint = replace(checkpoint, networks={said["network"]: {}})  # without its weights
        networks = new_networks(checkpoint, where=str(path))
    else:
        checkpoint = load_checkpoint(path)
        networks = check_fit(checkpoint, where=str(path))
    spec, training = get_model(checkpoint.model), checkpoint.training
    if training is not None:
        training = {name: training[name] for name in ("epoch", "iteration")} | {"optimizers": [*training["optimizers"]]}
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "model": checkpoint.model,
        "role": spec.role,
        "layout": checkpoint.layout,
        "foreign": checkpoint.layout not in (OWN_LAYOUT, SAFETENSORS_LAYOUT),
        "stripped": checkpoint.stripped and to_plain(checkpoint.stripped),
        "config": to_plain(checkpoint.config),
        "assumed_config": list(checkpoint.assumed_config),
        "parameters": {name: sum(one.numel() for one in networks[name].parameters()) for name in checkpoint.networks},
        "audio": to_plain(checkpoint.audio),
        "assumed_audio": list(checkpoint.assumed),
        "text": checkpoint.text and to_plain(checkpoint.text),
        "longest": checkpoint.longest and to_plain(checkpoint.longest),
        "ema": checkpoint.has_ema,
        "training": training,
        **more,
    }
