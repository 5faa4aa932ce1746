"""Checkpoints: our format, safe unpickling, and loading by content."""

from .checkpoint import (
    OWN_LAYOUT as OWN_LAYOUT,
    Checkpoint as Checkpoint,
    PartialFileError as PartialFileError,
    Stripped as Stripped,
    Weights as Weights,
    checkpoint_path as checkpoint_path,
    epoch_of as epoch_of,
    is_rolling as is_rolling,
    save_checkpoint as save_checkpoint,
    saved_checkpoints as saved_checkpoints,
    strip_checkpoint as strip_checkpoint,
)
from .conversion import convert_checkpoint as convert_checkpoint
from .exported import (
    WAVE as WAVE,
    ExportedFile as ExportedFile,
    ExportedVocoder as ExportedVocoder,
    Exports as Exports,
    OnnxForm as OnnxForm,
    Part as Part,
    Quantization as Quantization,
    Runner as Runner,
    Shape as Shape,
    Shapes as Shapes,
    describe as describe,
    describe_part as describe_part,
    random_examples as random_examples,
)
from .exporting import (
    part_path as part_path,
    write_compared as write_compared,
    write_onnx as write_onnx,
    write_quantized as write_quantized,
    write_safetensors as write_safetensors,
)
from .inspection import inspect_checkpoint as inspect_checkpoint
from .layout import (
    as_float32 as as_float32,
    optimizer_by_name as optimizer_by_name,
    published_state as published_state,
    training_state as training_state,
)
from .loading import (
    LoadedCheckpoint as LoadedCheckpoint,
    check_fit as check_fit,
    load_for_inference as load_for_inference,
    load_networks as load_networks,
    load_weights as load_weights,
    open_checkpoint as open_checkpoint,
    precision_for as precision_for,
    read_model as read_model,
)
from .options import EmaOptions as EmaOptions
from .reading import (
    load_checkpoint as load_checkpoint,
    load_last_checkpoint as load_last_checkpoint,
    read_payload as read_payload,
)
