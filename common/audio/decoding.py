"""Sound files of any kind as blocks of mono samples: libsndfile decodes them, or FFmpeg (PyAV) where it cannot."""

import io
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr

from common.audio.wav import check_complete
from common.errors import AudioError, reason
from common.files import check_file

BLOCK = 1 << 16  # samples that are decoded at once
_LEAST_MIXED = 0.03  # of the channels' power: one of eight that alone sounds keeps an eighth


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
        AudioError: it is missing, or no sound file; ``blocks`` raise it where the file is damaged or cut, a sample is
            not finite, or the channels cancel each other out.
    """
    name = name or str(source)
    if isinstance(source, Path):
        check_file(source, error=AudioError)
    if not (source.stat().st_size if isinstance(source, Path) else source):
        raise AudioError(f"{name}: an empty file")
    try:
        file = soundfile.SoundFile(source if isinstance(source, Path) else io.BytesIO(source))
    except (soundfile.LibsndfileError, OSError):
        opened = _decode_by_ffmpeg(source, name)
    else:
        check_complete(file, name=name)
        opened = Decoded(file.samplerate, file.channels, _mixed_down(_read_blocks(file, name), name))
    if sampling_rate is None or sampling_rate == opened.sampling_rate:
        return opened
    return replace(opened, blocks=_resampled(opened.blocks, opened.sampling_rate, sampling_rate))


def _read_blocks(file: soundfile.SoundFile, name: str) -> Iterator[np.ndarray]:
    """Blocks (T, channels) of an open file, which is closed at its end."""
    n_read, announced = 0, file.frames
    with file:
        try:
            while len(samples := file.read(BLOCK, dtype="float32", always_2d=True)):
                n_read += len(samples)
                yield samples
        except soundfile.LibsndfileError as error:
            raise AudioError(f"{name}: damaged or truncated") from error
    if n_read < announced * (1 if file.format == "FLAC" else 0.97):  # MP3 may only estimate its length
        raise AudioError(f"{name}: truncated, {n_read} of {announced} samples")


def _mixed_down(blocks: Iterator[np.ndarray], name: str) -> Iterator[np.ndarray]:
    """Blocks (T, channels) -> their mean (T,), finite numbers; AudioError where they cancel out."""
    power = power_mixed = 0.0
    for samples in blocks:
        mono, *others = samples.T  # several times faster than ``mean`` over rows
        mono = sum(others, mono) / np.float32(samples.shape[1])
        if not np.isfinite(mono).all():
            raise AudioError(f"{name}: samples that are not finite numbers")
        power += float(np.vdot(samples, samples)) / samples.shape[1]
        power_mixed += float(np.vdot(mono, mono))
        yield mono
    if power_mixed < power * _LEAST_MIXED:
        raise AudioError(f"{name}: its channels cancel each other out; export one of them")


def _decode_by_ffmpeg(source: Path | bytes, name: str) -> Decoded:
    import av  # here, as most recordings do without it

    try:
        container = av.open(str(source) if isinstance(source, Path) else io.BytesIO(source))
    except (av.FFmpegError, OSError, ValueError) as error:
        problem = "no sound file that libsndfile or FFmpeg can decode, or truncated"
        if isinstance(error, PermissionError):
            problem = "cannot be read, permission denied"
        raise AudioError(f"{name}: {problem}") from error
    if not container.streams.audio:
        container.close()
        raise AudioError(f"{name}: holds no sound")
    stream = container.streams.audio[0]
    return Decoded(stream.rate, stream.channels, _mixed_down(_ffmpeg_blocks(container, name), name))


def _ffmpeg_blocks(container: Any, name: str) -> Iterator[np.ndarray]:
    """Blocks (T, channels) of the first audio stream, whatever its sample format."""
    import av

    to_planes = av.AudioResampler(format="fltp")
    with closing(container):
        try:
            for frame in container.decode(audio=0):
                for planes in to_planes.resample(frame):
                    yield planes.to_ndarray().T
        except av.FFmpegError as error:
            raise AudioError(f"{name}: damaged or truncated ({reason(error)})") from error


def _resampled(blocks: Iterator[np.ndarray], old: int, new: int) -> Iterator[np.ndarray]:
    """Blocks at another sampling rate (Hz); the filter runs on from block to block."""
    stream = soxr.ResampleStream(old, new, 1, dtype="float32", quality="HQ")
    for block in blocks:
        yield stream.resample_chunk(block)
    yield stream.resample_chunk(np.zeros(0, np.float32), last=True)
