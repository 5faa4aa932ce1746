"""Checkpoints: our format, safe unpickling, and loading by content."""

from common.checkpoints.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from common.checkpoints.loading import LoadedCheckpoint, load_for_inference, load_networks, open_checkpoint

__all__ = [
    "Checkpoint",
    "LoadedCheckpoint",
    "load_checkpoint",
    "load_for_inference",
    "load_networks",
    "open_checkpoint",
    "save_checkpoint",
]
