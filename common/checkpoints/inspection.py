"""What a checkpoint is, as plain types: model, layout, architecture, contracts, training state, and storage."""

from collections import Counter
from pathlib import Path
from typing import Any

from common.checkpoints.checkpoint import OWN_LAYOUT, Checkpoint, PartialFileError, load_checkpoint, read_payload
from common.checkpoints.layout import is_state, with_state_dict
from common.checkpoints.loading import new_networks
from common.config import from_plain, to_plain
from common.errors import CheckpointError
from common.registry import get_model


def inspect_checkpoint(path: Path) -> tuple[Checkpoint, dict[str, Any]]:
    """A checkpoint of ours or of a published layout, and all about it as `scripts/inspect_checkpoint.sh --json` has it.

    Raises:
        CheckpointError: it is none, damaged, or a part of one whose other file is not there.
    """
    checkpoint, training = _loaded(path)
    spec = get_model(checkpoint.model)
    config = from_plain(spec.config, checkpoint.config, where=str(path))
    return checkpoint, {
        "file": str(path),
        "bytes": path.stat().st_size,
        "model": checkpoint.model,
        "role": spec.role,
        "layout": checkpoint.layout,
        "foreign": checkpoint.layout != OWN_LAYOUT,
        "stripped": None if checkpoint.stripped is None else to_plain(checkpoint.stripped),
        "config": to_plain(config),
        "assumed_config": list(checkpoint.assumed_config),
        "parameters": _parameters(checkpoint, where=str(path)),
        "dtypes": _stored_dtypes(path),
        "audio": to_plain(checkpoint.audio),
        "assumed_audio": list(checkpoint.assumed),
        "text": None if checkpoint.text is None else to_plain(checkpoint.text),
        "ema": checkpoint.has_ema,
        "training": training,
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
            return load_checkpoint(path, training=False), {"unreadable": str(error)}
        except CheckpointError:
            raise error from None
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
    payload = read_payload(path, on_demand=True)
    if "format" in payload:
        states = [*payload["networks"].values(), *(payload["ema"] or {}).values()]
    else:
        states = [value for value in with_state_dict(payload).values() if is_state(value)]
    counts: Counter[str] = Counter()
    for state in states:
        for value in state.values():
            if value.is_floating_point():
                counts[str(value.dtype).removeprefix("torch.")] += value.numel()
    return dict(counts)
