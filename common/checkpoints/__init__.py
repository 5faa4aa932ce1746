"""Checkpoints: our format, safe unpickling, and loading by content."""

from common.checkpoints.arguments import add_ema_argument
from common.checkpoints.checkpoint import (
    OWN_LAYOUT,
    Checkpoint,
    PartialFileError,
    Stripped,
    checkpoint_path,
    epoch_of,
    is_rolling,
    read_payload,
    save_checkpoint,
    saved_checkpoints,
)
from common.checkpoints.conversion import Conversion, convert_checkpoint
from common.checkpoints.exported import ExportedFile, Exports, OnnxForm, Part, Quantization
from common.checkpoints.inspection import inspect_checkpoint
from common.checkpoints.layout import as_float32, optimizer_by_name, published_state, training_state
from common.checkpoints.loading import (
    NO_EMA,
    LoadedCheckpoint,
    check_fit,
    load_for_inference,
    load_networks,
    load_weights,
    load_with_precision,
    open_checkpoint,
    precision_for,
    read_model,
)
from common.checkpoints.reading import load_checkpoint, load_last_checkpoint
from common.checkpoints.running import Runner, Shape, Signature
from common.checkpoints.stripping import DTYPES, strip_checkpoint
from common.checkpoints.weights import Weights, check_weights
