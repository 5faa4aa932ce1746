"""Checkpoints in safetensors: the weights of the network that infers, and the description of exported files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from common.checkpoints.checkpoint import SAFETENSORS_LAYOUT, Checkpoint, read_safetensors_weights, safetensors_header
from common.checkpoints.exported import METADATA_KEY, checkpoint_of, read_description
from common.files import write_atomically


def write_safetensors(path: Path, checkpoint: Checkpoint, description: dict[str, Any]) -> float:
    """Write the one network of a stripped checkpoint, with the names that its parameters have in checkpoints.

    Returns the largest difference of the weights in the file from the checkpoint's.
    """
    from safetensors.torch import save

    state = {key: value.contiguous() for key, value in _weights_of(checkpoint).items()}
    content = save(state, metadata={METADATA_KEY: json.dumps(description)})
    write_atomically(path, lambda file: file.write(content))
    read = _weights_of(read_safetensors(path))
    assert set(read) == set(state), "all weights are written"
    return max(float((read[key].double() - state[key].double()).abs().max()) for key in state)


def _weights_of(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """The weights of a checkpoint with one network."""
    (state,) = checkpoint.networks.values()
    return state


def read_safetensors(path: Path) -> Checkpoint:
    """The checkpoint that `write_safetensors` was given.

    Raises:
        CheckpointError: it is damaged, of another version, or of another program.
    """
    state, metadata = read_safetensors_weights(path)
    description = read_description(metadata, where=path)
    checkpoint = checkpoint_of(description, networks={description["network"]: state}, where=path)
    return replace(checkpoint, layout=SAFETENSORS_LAYOUT)


def is_own_safetensors(path: Path) -> bool:
    """Whether a file is in safetensors, with our description."""
    header = safetensors_header(path)
    return header is not None and f'"{METADATA_KEY}"'.encode() in header
