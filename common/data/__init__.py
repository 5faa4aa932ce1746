"""Training data: filelists, batches, samplers, and the features, recordings and texts of a list."""

from common.data.batch import Batch, Dataset, ErrorsAsItems, pad_rows
from common.data.buckets import BucketedDataset, bucketed
from common.data.features import (
    check_made_with,
    check_stored,
    feature_name,
    frames_of_tokens,
    load_feature,
    load_fractions,
    shape_error,
)
from common.data.filelist import (
    FilelistEntry,
    Filelists,
    check_path,
    first_fields,
    paths_of,
    read_filelist,
    read_numbered_lines,
)
from common.data.loader import build_loader, leave_to_the_parent, loader_processes, raise_errors
from common.data.recordings import RecordingDataset, input_mel_extractor
from common.data.sampler import GlobalBatchSampler, ValidationSampler
from common.data.text_mel import TextMelBatch, TextMelDataset, TextMelUtterance, collated
