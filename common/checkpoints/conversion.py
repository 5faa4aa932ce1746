"""Converts other implementations' checkpoints to our format, and describes checkpoints."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from common.checkpoints.checkpoint import OWN_LAYOUT, SAFETENSORS_LAYOUT, Checkpoint
from common.checkpoints.command_line import ConversionOptions
from common.checkpoints.exported import open_exported
from common.checkpoints.layout import with_state_dict
from common.checkpoints.loading import check_fit, new_networks
from common.checkpoints.reading import file_format, load_checkpoint, read_payload, read_published
from common.config import naming_errors, to_plain
from common.errors import CheckpointError, OptionError
from common.files import parse_yaml, read_text
from common.registry import get_model


def convert_checkpoint(path: Path, options: ConversionOptions) -> Checkpoint:
    """Read a checkpoint from another implementation, with its training state if it has one.

    Raises CheckpointError if it's unknown, damaged or ours already, or if its weights don't fit the model; OptionError
    if a configuration or discriminators are given but it has its own.
    """
    payload = with_state_dict(read_payload(path))
    if "format" in payload:
        raise CheckpointError(f"{path}: already has the toolkit's own format; every command accepts it")
    config, discriminators = options.config, options.discriminators
    if config is not None:
        if payload.get("config"):
            raise OptionError(f"--config {config}: {path} has its own configuration; leave out the option")
        payload |= {"config": parse_yaml(read_text(config), where=str(config))}  # JSON is YAML too
    if discriminators is not None:
        others = read_payload(discriminators)
        if not {"mpd", "msd"} <= others.keys() or "mpd" in payload:
            problem = f"{path} has its own discriminators" if "mpd" in payload else "contains no mpd and msd"
            raise OptionError(f"--discriminators {discriminators}: {problem}")
        payload |= others
    with naming_errors(str(config or ""), error=CheckpointError):
        checkpoint = read_published(payload, path=path, training=True)
    for weights in filter(None, (checkpoint.networks, checkpoint.ema)):
        check_fit(replace(checkpoint, networks=weights), where=f"{path}: {checkpoint.layout}")
    return checkpoint


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
