"""Checkpoints in safetensors: the weights of the network that infers, and the description of exported files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from common.checkpoints.checkpoint import SAFETENSORS_LAYOUT, Checkpoint, read_safetensors_weights, safetensors_header
from common.checkpoints.exported import METADATA_KEY, checkpoint_of, read_description
from common.files import write_atomically


def write_safetensors(path: Path, checkpoint: Checkpoint, description: dict[str, Any]) -> None:
    """Write the one network of a stripped checkpoint, with the names that its parameters have in checkpoints."""
    from safetensors.torch import save

    state = {key: value.contiguous() for key, value in weights_of(checkpoint).items()}
    content = save(state, metadata={METADATA_KEY: json.dumps(description)})
    write_atomically(path, lambda file: file.write(content))


def weights_of(checkpoint: Checkpoint) -> dict[str, Tensor]:
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


def largest_difference_of_weights(path: Path, checkpoint: Checkpoint) -> float:
    """Between a file's weights and the checkpoint's that it was made of."""
    read, expected = weights_of(read_safetensors(path)), weights_of(checkpoint)
    assert set(read) == set(expected), "all weights are written"
    return max(float((read[key].double() - expected[key].double()).abs().max()) for key in expected)


def is_own_safetensors(path: Path) -> bool:
    """Whether a file is in safetensors, with our description."""
    header = safetensors_header(path)
    return header is not None and f'"{METADATA_KEY}"'.encode() in header
