"""Checkpoints: our format, safe unpickling, and loading by content."""

from common.checkpoints.arguments import add_ema_argument
from common.checkpoints.checkpoint import (
    Checkpoint,
    Stripped,
    checkpoint_path,
    epoch_of,
    is_rolling,
    load_checkpoint,
    load_last_checkpoint,
    read_payload,
    save_checkpoint,
    saved_checkpoints,
)
from common.checkpoints.exported import ExportedFile, Exports, Part, Runner
from common.checkpoints.layout import as_float32, optimizer_by_name, training_state, without_prefix
from common.checkpoints.loading import (
    NO_EMA,
    LoadedCheckpoint,
    load_for_inference,
    load_networks,
    load_weights,
    open_checkpoint,
)
from common.checkpoints.stripping import DTYPES, strip_checkpoint
