"""Converts other implementations' checkpoints to our format."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from common.checkpoints.checkpoint import Checkpoint
from common.checkpoints.layout import with_state_dict
from common.checkpoints.loading import check_fit
from common.checkpoints.options import ConversionOptions
from common.checkpoints.reading import read_payload, read_published
from common.config import naming_errors
from common.errors import CheckpointError, OptionError
from common.files import parse_yaml, read_text


def convert_checkpoint(path: Path, options: ConversionOptions) -> Checkpoint:
    """Read a checkpoint from another implementation, with its training state if it has one.

    Raises CheckpointError if it's unknown, damaged or ours already, or if its weights don't fit the model; OptionError
    if a configuration or discriminators are given but it has its own.
    """
    payload = with_state_dict(read_payload(path))
    if "format" in payload:
        raise CheckpointError(f"{path}: already has the toolkit's own format; every command accepts it")
    payload = _with_given(payload, options, path=path)
    with naming_errors(str(options.config or ""), error=CheckpointError):
        checkpoint = read_published(payload, path=path, training=True)
    for weights in filter(None, (checkpoint.networks, checkpoint.ema)):
        check_fit(replace(checkpoint, networks=weights), where=f"{path}: {checkpoint.layout}")
    return checkpoint


def _with_given(payload: dict[str, Any], options: ConversionOptions, *, path: Path) -> dict[str, Any]:
    """Return the file's dict, with the configuration and discriminators that options name."""
    config, discriminators = options.config, options.discriminators
    given: dict[str, Any] = {}
    if config is not None:
        if payload.get("config"):
            raise OptionError(f"--config {config}: {path} has its own configuration; leave out the option")
        given["config"] = parse_yaml(read_text(config), where=str(config))  # JSON is YAML too
    if discriminators is not None:
        other = read_payload(discriminators)
        if not {"mpd", "msd"} <= other.keys() or "mpd" in payload:
            problem = f"{path} has its own discriminators" if "mpd" in payload else "contains no mpd and msd"
            raise OptionError(f"--discriminators {discriminators}: {problem}")
        given |= other
    return payload | given
