"""Training data: filelists, batches, samplers, and the features, recordings and texts of a list."""

from .batch import (
    Batch as Batch,
    Dataset as Dataset,
    ErrorsAsItems as ErrorsAsItems,
    Longest as Longest,
    join_batches as join_batches,
    pad_rows as pad_rows,
)
from .buckets import Shape as Shape, shapes_for as shapes_for
from .features import (
    check_made_with as check_made_with,
    check_stored as check_stored,
    feature_name as feature_name,
    frames_of_tokens as frames_of_tokens,
    load_feature as load_feature,
    load_fractions as load_fractions,
    shape_error as shape_error,
)
from .filelist import (
    FilelistEntry as FilelistEntry,
    Filelists as Filelists,
    first_fields as first_fields,
    paths_of as paths_of,
    read_filelist as read_filelist,
    read_numbered_lines as read_numbered_lines,
)
from .loader import (
    build_loader as build_loader,
    leave_to_the_parent as leave_to_the_parent,
    loader_processes as loader_processes,
    raise_errors as raise_errors,
)
from .recordings import (
    SILENCE as SILENCE,
    RecordingDataset as RecordingDataset,
    input_mel_extractor as input_mel_extractor,
)
from .sampler import GlobalBatchSampler as GlobalBatchSampler, validation_batches as validation_batches
from .text_mel import TextMelBatch as TextMelBatch, TextMelDataset as TextMelDataset
