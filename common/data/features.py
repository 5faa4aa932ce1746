"""Load and check the files in a list: mel-spectrograms, other features, and recordings."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from common.audio.mel import MelExtractor
from common.audio.options import features_config
from common.audio.wav import check_wav
from common.config import AudioConfig, differences
from common.data.filelist import FilelistEntry
from common.errors import InputError, at
from common.torch_file import load_tensor


def feature_name(path: str) -> str:
    """Return the path of an utterance's features within their folder: ``wavs/speaker/a.wav`` -> ``speaker/a``."""
    parts = PurePosixPath(path)
    return PurePosixPath(*(parts.parts[1:] or parts.parts)).with_suffix("").as_posix()


def load_fractions(path: Path, *, where: str) -> Tensor:
    """Load a tensor as float32; raises InputError if it is missing or broken, or has non-finite values."""
    tensor = load_tensor(path, where=where).float()
    # The sum is a fast check; if it isn't finite, it may have overflowed.
    if not torch.isfinite(tensor.sum()) and not torch.isfinite(tensor).all():
        raise InputError(f"{path}: contains non-finite values ({where})")
    return tensor


def load_feature(folder: Path, entry: FilelistEntry, column: str) -> Tensor:
    """Load the tensor that a column names, as float32; raises InputError like `load_fractions`."""
    return load_fractions(folder / entry.fields[column], where=entry.where)


def frames_of_tokens(values: Tensor, n_frames: int, *, name: str, frames_of: str, where: str = "") -> Tensor:
    """Return the durations in the file ``name`` as int64 frames.

    Raises InputError if they aren't a row of whole numbers, or don't sum to the number of frames in ``frames_of``.
    """
    if values.dim() != 1 or not torch.equal(values, values.round()) or (values < 0).any():
        raise InputError(f"{name}: expected a row of whole numbers of frames{at(where)}")
    if (total := int(values.sum())) != n_frames:
        raise InputError(f"{name}: {total} frames in total, but {frames_of} has {n_frames}{at(where)}")
    return values.long()


def load_mel(folder: Path, entry: FilelistEntry, *, n_mels: int) -> Tensor:
    """Load the mel-spectrogram (n_mels, F) float32 that a line names; raises InputError if it's unusable."""
    mel = load_feature(folder, entry, "mel")
    if mel.dim() != 2 or mel.size(0) != n_mels or mel.size(1) == 0:
        raise shape_error(entry, "mel", mel, wanted=f"({n_mels}, frames)")
    return mel


def shape_error(entry: FilelistEntry, column: str, got: Tensor, *, wanted: str) -> InputError:
    """Make the error for a feature of the wrong shape."""
    return InputError(f"{entry.fields[column]}: shape {tuple(got.shape)}, expected {wanted} ({entry.where})")


def mel_size(folder: Path, entry: FilelistEntry) -> int:
    """Return the size of a mel file in bytes, which grows with its frames; raises InputError if it is missing."""
    path = folder / entry.fields["mel"]
    try:
        return path.stat().st_size
    except OSError as error:
        raise InputError(f"{path}: no such file ({entry.where}); run extract_mels.py first") from error


def check_stored(folder: Path, entries: Sequence[FilelistEntry], *, column: str, audio: AudioConfig) -> None:
    """Raise InputError, which names each difference, if a list's features were made with other audio settings."""
    name = "mels" if column == "mel" else column
    for subfolder in sorted({(folder / entry.fields[column]).parent for entry in entries}):
        check_made_with(subfolder, audio, name=name)


def check_made_with(folder: Path, audio: AudioConfig, *, name: str) -> None:
    """Raise InputError if the ``audio.json`` in a folder of features differs from ``audio``.

    ``name`` says which features they are. Folders made by the original tools have no such file.
    """
    made_with = features_config(folder)
    if made_with and (lines := differences(made_with, audio, names=(f"the {name}", "the options"))):
        raise InputError(f"{folder / 'audio.json'}: the audio settings of the {name} differ: {'; '.join(lines)}")


def recorded_samples(folder: Path, entry: FilelistEntry, extractor: MelExtractor) -> int:
    """Return the number of samples in a line's recording, read from its header.

    Raises InputError if it is missing, isn't in the format that ``extractor`` needs, or is too short for a mel.
    """
    path = folder / entry.fields["wav"]
    n_samples = check_wav(path, sampling_rate=extractor.config.sampling_rate, where=entry.where).n_samples
    if n_samples < extractor.min_samples:
        raise InputError(f"{path}: {n_samples} samples, a mel needs at least {extractor.min_samples} ({entry.where})")
    return n_samples
