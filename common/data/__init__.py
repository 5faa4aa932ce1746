"""Training data: filelists, batches, samplers, and the features, recordings and texts of a list."""

from common.data.batch import Batch, Dataset, Draw, ErrorsAsItems
from common.data.filelist import FilelistEntry, read_filelist
from common.data.recordings import Recordings
from common.data.sampler import EpochDraws, GlobalBatchSampler, ValidationSampler
from common.data.transcripts import Transcripts

__all__ = [
    "Batch",
    "Dataset",
    "Draw",
    "EpochDraws",
    "ErrorsAsItems",
    "FilelistEntry",
    "GlobalBatchSampler",
    "Recordings",
    "Transcripts",
    "ValidationSampler",
    "read_filelist",
]
