"""Reads mono WAV and FLAC as float32 in [-1, 1]; writes WAV, FLAC, Ogg Vorbis, MP3, Opus and AAC (M4A)."""

import io
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import soundfile
import soxr
import torch
import torch.nn.functional as F
from torch import Tensor

from common.errors import AudioError, at
from common.files import check_file, write_atomically

CONTAINERS = ("WAV", "WAVEX", "RF64", "FLAC")
LOSSLESS = ("PCM_S8", "PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE")  # sample formats
Write = Callable[[np.ndarray], object]  # samples (T,) int16; T is at least 1
_BLOCK = 1 << 16  # samples per write; libsndfile crashes if it gets minutes of sound at once for Ogg Vorbis


class SoundFormat(NamedTuple):
    """A file format for sound."""

    container: str  # libsndfile's name, or FFmpeg's in lowercase
    codec: str
    rates: tuple[int, ...] = ()  # Hz that it supports; empty: any
    options: Mapping[str, Any] = MappingProxyType({})  # for libsndfile's file or FFmpeg's container


_MPEG_RATES = (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)
SOUND_FORMATS = {  # by suffix
    ".wav": SoundFormat("WAV", "PCM_16"),
    ".flac": SoundFormat("FLAC", "PCM_16"),
    ".ogg": SoundFormat("OGG", "VORBIS"),
    ".mp3": SoundFormat("MP3", "MPEG_LAYER_III", _MPEG_RATES),
    ".opus": SoundFormat("OGG", "OPUS", (8000, 12000, 16000, 24000, 48000)),
    ".m4a": SoundFormat("ipod", "aac", _MPEG_RATES),
}
_UNKNOWN_LENGTH = 0xFFFFFFFF  # in the header of a WAV that was written to a pipe
# Only libsndfile's log shows whether a WAV or RF64 file has fewer samples than its header states.
_CUT = re.compile(rf"(?m)^data : (?!{_UNKNOWN_LENGTH} )\d+ \(should be|Calculated frame count \d+ does not match")
SOUND_SUFFIXES = f"{', '.join(list(SOUND_FORMATS)[:-1])} or {list(SOUND_FORMATS)[-1]}"  # for messages


class WavInfo(NamedTuple):
    """The header of a usable recording."""

    n_samples: int
    sampling_rate: int  # Hz


def check_wav(path: Path, *, sampling_rate: int | None, where: str = "") -> WavInfo:
    """Read a file's header; raises AudioError for most files that `load_wav` rejects.

    ``sampling_rate`` is in Hz; None accepts any. Errors name ``where`` (``list.txt:7``).
    """
    with _open_mono(path, sampling_rate=sampling_rate, where=where) as file:
        return WavInfo(n_samples=file.frames, sampling_rate=file.samplerate)


def load_wav(
    path: Path, *, sampling_rate: int | None, where: str = "", start: int = 0, n_samples: int | None = None
) -> Tensor:
    """Read a mono recording: (T,) float32 in [-1, 1], with integers divided by the full scale of their bit depth.

    ``start`` and ``n_samples`` select a part within the recording. The other arguments and errors are `check_wav`'s.
    """
    with _open_mono(path, sampling_rate=sampling_rate, where=where) as file:
        wanted = file.frames - start if n_samples is None else n_samples
        try:
            file.seek(start)
            samples = file.read(wanted, dtype="float32")
        except soundfile.LibsndfileError as error:
            raise AudioError(f"{path}: damaged or truncated{at(where)}") from error
    if len(samples) < wanted:
        raise AudioError(f"{path}: truncated, {len(samples)} of {wanted} samples{at(where)}")
    low, high = float(samples.min()), float(samples.max())  # NaN if any sample is NaN
    if not (low >= -1 and high <= 1):
        raise AudioError(f"{path}: samples from {low:g} to {high:g}, expected within [-1, 1]{at(where)}")
    return torch.from_numpy(samples)


def open_wav(path: Path, *, where: str = "") -> soundfile.SoundFile:
    """Open a file of any sample format, rate and channels; raises AudioError if it's missing, damaged or truncated."""
    check_file(path, where=where, error=AudioError)
    try:
        file = soundfile.SoundFile(path)
    except (soundfile.LibsndfileError, OSError) as error:
        reason = getattr(error, "error_string", str(error)).rstrip(".")
        raise AudioError(f"{path}: not a readable WAV or FLAC file ({reason}){at(where)}") from error
    check_complete(file, name=str(path), where=where)
    return file


def check_complete(file: soundfile.SoundFile, *, name: str, where: str = "") -> None:
    """Raise AudioError for a WAV with fewer samples than its header states, as after an interrupted copy."""
    if _CUT.search(file.extra_info):
        raise AudioError(f"{name}: truncated, its header states more samples than it contains{at(where)}")


def check_sound_format(path: PurePath, *, where: str = "") -> SoundFormat:
    """Return the format for a path's suffix; raises AudioError for unknown suffixes."""
    form = SOUND_FORMATS.get(path.suffix.lower())
    if form is None:
        raise AudioError(f"{path}: expected a name that ends in {SOUND_SUFFIXES}{at(where)}")
    return form


def rate_for(rate: int, rates: Sequence[int]) -> int:
    """Return the lowest of ``rates`` (Hz) that isn't below ``rate``, or the highest; ``rate`` itself without any."""
    return next((one for one in rates if one >= rate), max(rates, default=rate))


def save_wav(path: Path, wave: Tensor, *, sampling_rate: int, durable: bool = True) -> None:
    """Write ``wave`` (T,), nominally in [-1, 1]; see `encode_sound` and `write_atomically`."""
    encoded = encode_sound(wave, path, sampling_rate=sampling_rate)
    write_atomically(path, lambda file: file.write(encoded), durable=durable)


def encode_sound(wave: Tensor, path: PurePath, *, sampling_rate: int) -> bytes:
    """Encode ``wave`` with 16 bits in the format of the path's suffix; resample it if the format requires that.

    Raises AudioError for unknown suffixes and non-finite samples.
    """
    form = check_sound_format(path)
    rate = rate_for(sampling_rate, form.rates)
    samples = resample(wave.detach().to("cpu", torch.float32), ratio=rate / sampling_rate).numpy()
    if not np.isfinite(samples).all():
        raise AudioError(f"{path}: the wave to save is not finite")
    encoded = io.BytesIO()  # libsndfile prints a traceback if it can't write to a Python file
    write, close = open_encoder(encoded, form, rate)
    write(to_int16(samples))
    close()
    return encoded.getvalue()


def open_encoder(target: io.BytesIO, form: SoundFormat, rate: int) -> tuple[Write, Callable[[], None]]:
    """Return a function that encodes samples of ``rate`` Hz into ``target``, and one that ends the file."""
    if form.container.islower():
        return _open_ffmpeg(target, form, rate)
    how: Any = {"format": form.container, **form.options}
    file = soundfile.SoundFile(target, "w", rate, 1, form.codec, **how)

    def write(samples: np.ndarray) -> None:
        for start in range(0, len(samples), _BLOCK):
            file.write(samples[start : start + _BLOCK])

    return write, file.close


def _open_ffmpeg(target: io.BytesIO, form: SoundFormat, rate: int) -> tuple[Write, Callable[[], None]]:
    import av  # here, because only AAC files and the server's Opus need it

    container = av.open(target, "w", format=form.container, options=dict(form.options))
    stream: Any = container.add_stream(form.codec, rate=rate, layout="mono", bit_rate=64_000)
    n_written = 0

    def write(samples: np.ndarray) -> None:
        nonlocal n_written
        frame = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
        frame.sample_rate, frame.pts = rate, n_written  # without pts, players hear the encoder's delay as silence
        n_written += len(samples)
        container.mux(stream.encode(frame))

    def close() -> None:
        container.mux(stream.encode(None))
        container.close()

    return write, close


def to_int16(samples: np.ndarray) -> np.ndarray:
    """Convert samples (T,) in [-1, 1] to little-endian 16-bit integers, as in WAV files, clipped to full scale."""
    return np.clip(np.round(samples * 32768.0), -32768, 32767).astype("<i2")


def wav_header(sampling_rate: int) -> bytes:
    """Return the header of a mono 16-bit WAV of unknown length."""
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, sampling_rate, 2 * sampling_rate, 2, 16)
    return b"RIFF" + struct.pack("<I", _UNKNOWN_LENGTH) + b"WAVE" + form + b"data" + struct.pack("<I", _UNKNOWN_LENGTH)


def _open_mono(path: Path, *, sampling_rate: int | None, where: str) -> soundfile.SoundFile:
    """Open a file that `load_wav` can read."""
    file = open_wav(path, where=where)
    problem = ""
    if file.format not in CONTAINERS or file.subtype not in LOSSLESS:
        problem = f"{file.format} file with {file.subtype} samples, expected WAV or FLAC with integer or float samples"
    elif file.channels != 1:
        problem = f"{file.channels} channels, expected 1; mix it down to mono"
    elif sampling_rate is not None and file.samplerate != sampling_rate:
        problem = f"{file.samplerate} Hz, expected {sampling_rate}; resample it or pass --sampling-rate"
    elif file.frames == 0:
        problem = "no samples"
    if problem:
        raise AudioError(f"{path}: {problem}{at(where)}")
    return file


def resample(wave: Tensor, *, ratio: float) -> Tensor:
    """(T,) -> (round(T * ratio),), at least one sample; ``ratio`` is the new rate divided by the old one."""
    if ratio == 1:
        return wave
    n_samples = max(math.floor(len(wave) * ratio + 0.5), 1)
    samples = soxr.resample(wave.numpy(), 1.0, ratio, quality="HQ")[:n_samples]
    return F.pad(torch.from_numpy(samples), (0, n_samples - len(samples)))
