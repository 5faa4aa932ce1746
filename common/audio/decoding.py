"""Sound files of any kind as blocks of mono samples: libsndfile decodes them, or FFmpeg (PyAV) where it cannot."""

import io
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr

from common.audio.wav import check_complete
from common.errors import AudioError, reason
from common.files import check_file

BLOCK = 1 << 16  # samples that are decoded at once


@dataclass(frozen=True)
class Decoded:
    """A recording that is being read."""

    sampling_rate: int  # Hz, of the file
    n_channels: int
    blocks: Iterator[np.ndarray]  # (T,) float32, the mean of the channels; it may go beyond [-1, 1]


def decode(source: Path | bytes, *, sampling_rate: int | None = None, name: str = "") -> Decoded:
    """Open a recording, a file or its bytes, by its content; ``blocks`` are resampled to ``sampling_rate``, if given.

    ``name`` is what errors call it; "" is its path.

    Raises:
        AudioError: it is missing, or no sound file; ``blocks`` raise it where the file is damaged or cut, or a sample
            is not finite.
    """
    name = name or str(source)
    if isinstance(source, Path):
        check_file(source, error=AudioError)
    try:
        file = soundfile.SoundFile(source if isinstance(source, Path) else io.BytesIO(source))
    except (soundfile.LibsndfileError, OSError):
        opened = _decode_by_ffmpeg(source, name)
    else:
        check_complete(file, name=name)
        opened = Decoded(file.samplerate, file.channels, _read_blocks(file, name))
    blocks = _checked(opened.blocks, name)
    if sampling_rate is not None and sampling_rate != opened.sampling_rate:
        blocks = _resampled(blocks, opened.sampling_rate, sampling_rate)
    return Decoded(opened.sampling_rate, opened.n_channels, blocks)


def _read_blocks(file: soundfile.SoundFile, name: str) -> Iterator[np.ndarray]:
    """Mono blocks of an open file, which is closed at its end."""
    n_read, announced = 0, file.frames
    with file:
        try:
            while len(samples := file.read(BLOCK, dtype="float32", always_2d=True)):
                n_read += len(samples)
                yield _mixed_down(samples)
        except soundfile.LibsndfileError as error:
            raise AudioError(f"{name}: damaged or truncated") from error
    if file.format == "FLAC" and n_read < announced:  # headers of MP3 and Ogg may only estimate their length
        raise AudioError(f"{name}: truncated, {n_read} of {announced} samples")


def _mixed_down(samples: np.ndarray) -> np.ndarray:
    """(T, channels) -> their mean (T,); a column at a time, which is several times faster than ``mean`` over rows."""
    mono = samples[:, 0].copy()
    for channel in range(1, samples.shape[1]):
        mono += samples[:, channel]
    return mono / np.float32(samples.shape[1]) if samples.shape[1] > 1 else mono


def _decode_by_ffmpeg(source: Path | bytes, name: str) -> Decoded:
    import av  # here, as most recordings do without it

    try:
        container = av.open(str(source) if isinstance(source, Path) else io.BytesIO(source))
    except (av.FFmpegError, OSError, ValueError) as error:
        raise AudioError(f"{name}: no sound file that libsndfile or FFmpeg can decode") from error
    if not container.streams.audio:
        container.close()
        raise AudioError(f"{name}: holds no sound")
    stream = container.streams.audio[0]
    return Decoded(stream.rate, stream.channels, _ffmpeg_blocks(container, name))


def _ffmpeg_blocks(container: Any, name: str) -> Iterator[np.ndarray]:
    """Mono blocks of the first audio stream, whatever its sample format."""
    import av

    to_planes = av.AudioResampler(format="fltp")
    with closing(container):
        try:
            for frame in container.decode(audio=0):
                for planes in to_planes.resample(frame):
                    yield _mixed_down(planes.to_ndarray().T)
        except av.FFmpegError as error:
            raise AudioError(f"{name}: damaged or truncated ({reason(error)})") from error


def _checked(blocks: Iterator[np.ndarray], name: str) -> Iterator[np.ndarray]:
    for block in blocks:
        if not np.isfinite(block).all():
            raise AudioError(f"{name}: samples that are not finite numbers")
        yield block


def _resampled(blocks: Iterator[np.ndarray], old: int, new: int) -> Iterator[np.ndarray]:
    """Blocks at another sampling rate (Hz); the filter runs on from block to block."""
    stream = soxr.ResampleStream(old, new, 1, dtype="float32", quality="HQ")
    for block in blocks:
        yield stream.resample_chunk(block)
    yield stream.resample_chunk(np.zeros(0, np.float32), last=True)
