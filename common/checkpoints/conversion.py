"""Foreign checkpoints made ours: recognized by content, compared with the model, and nothing lost without a word."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from common.checkpoints.checkpoint import Checkpoint, PartialFileError, Weights
from common.checkpoints.layout import is_state, with_state_dict
from common.checkpoints.loading import new_networks
from common.checkpoints.options import ConversionOptions
from common.checkpoints.reading import read_payload, read_published
from common.errors import CheckpointError, InputError, OptionError
from common.files import parse_yaml, read_text

_SEED = 1234  # of weights that a partial file lacks


class _Recorded(dict[str, Any]):
    """A file's dict that knows which of its entries have been read."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.used: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.used.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.used.add(key)
        return super().get(key, default)


def convert_checkpoint(path: Path, options: ConversionOptions) -> tuple[Checkpoint, list[str]]:
    """A checkpoint of another implementation as one of ours, with its training state where it has one.

    Returns a line on each thing that was made up or left out too. With ``options.partial`` weights that the file lacks
    are as in a new network, and those that the model does not have are left out. Raises CheckpointError if it is
    unknown, damaged or ours already; or some weights are missing, left over or of another shape, which are listed, and
    ``options.partial`` is False; OptionError if it has a configuration or discriminators, and others are given.
    """
    payload = with_state_dict(read_payload(path))
    if "format" in payload:
        raise CheckpointError(f"{path}: is in the toolkit's own format already; every command takes it as it is")
    recorded = _Recorded(_with_given(payload, options, path=path))
    changes: list[str] = []
    try:
        try:
            checkpoint = read_published(recorded, path=path, training=False)
        except PartialFileError as error:
            if error.main is None:
                raise
            return convert_checkpoint(error.main, options)
        try:
            checkpoint = read_published(recorded, path=path, training=True)
        except CheckpointError as error:
            if not options.partial:
                raise CheckpointError(f"{error}; --partial leaves the training state out") from error
            changes = [f"the training state is left out ({error})"]
    except InputError as error:
        raise CheckpointError(f"{options.config}: {error}" if options.config else str(error)) from error
    fitted, others = _fitted(checkpoint, where=path, partial=options.partial)
    if others and checkpoint.training is not None:
        others.append("the training state is left out, as it is of other weights")
    # What of the file no reader asks for: weights of other networks, which are refused, and the rest
    unused = [name for name in recorded if name not in recorded.used]
    if (weights := [name for name in unused if is_state(recorded[name])]) and not options.partial:
        listed = f"{', '.join(weights)}; --partial leaves them out"
        raise CheckpointError(f"{path}: holds weights that the model has no place for: {listed}")
    return fitted, changes + others + ([f"not taken over: {', '.join(unused)}"] if unused else [])


def _with_given(payload: dict[str, Any], options: ConversionOptions, *, path: Path) -> dict[str, Any]:
    """The file's dict with the configuration and the discriminators that options name."""
    config, discriminators = options.config, options.discriminators
    given: dict[str, Any] = {}
    if config is not None:
        if payload.get("config"):
            raise OptionError(f"--config {config}: {path} holds a configuration; leave the option out")
        given["config"] = parse_yaml(read_text(config), where=str(config))  # JSON is YAML too
    if discriminators is not None:
        other = read_payload(discriminators)
        if not {"mpd", "msd"} <= other.keys() or "mpd" in payload:
            problem = f"{path} holds discriminators itself" if "mpd" in payload else "holds no mpd and msd"
            raise OptionError(f"--discriminators {discriminators}: {problem}")
        given |= other
    return payload | given


def _fitted(checkpoint: Checkpoint, *, where: Path, partial: bool) -> tuple[Checkpoint, list[str]]:
    """The checkpoint with exactly the weights that its networks have, and what was changed for that."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        networks = new_networks(checkpoint, where=str(where), device="cpu" if partial else "meta")
    new = {name: network.state_dict() for name, network in networks.items()}
    weights, changes = _filled(checkpoint.networks, new, source="as in a new network")
    ema = checkpoint.ema
    if ema is not None:
        ema, more = _filled(ema, weights, source="taken from the raw weights", prefix="EMA ")
        changes += more
    if not changes:
        return checkpoint, []
    if not partial:
        listed = f"{'; '.join(changes)}; --partial converts what fits"
        raise CheckpointError(f"{where}: {checkpoint.layout}, but its weights do not fit: {listed}")
    return replace(checkpoint, networks=weights, ema=ema, training=None), changes


def _filled(given: Weights, own: Weights, *, source: str, prefix: str = "") -> tuple[Weights, list[str]]:
    """Weights with the names and shapes of ``own``: those given that fit, else its; and a line for each other one."""
    weights: Weights = {}
    changes = []
    for name, state in given.items():
        weights[name] = {}
        for key, value in own[name].items():
            if key in state and state[key].shape == value.shape:
                weights[name][key] = state[key]
                continue
            found = f"of shape {tuple(state[key].shape)}, expected {tuple(value.shape)}" if key in state else "missing"
            changes.append(f"{prefix}{name}.{key} is {found} ({source})")
            weights[name][key] = value.detach().clone()
        changes += [f"{prefix}{name}.{key} is left over (left out)" for key in state if key not in own[name]]
    return weights, changes
