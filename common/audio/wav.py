"""Recordings in and sound out: WAV and FLAC files to mono float32 in [-1, 1], with one clear line for bad ones.

Sound is written as WAV, FLAC, Ogg Vorbis or MP3.
"""

import math
import struct
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import BinaryIO

import numpy as np
import soundfile
import soxr
import torch
import torch.nn.functional as F
from torch import Tensor

from common.errors import AudioError, at
from common.files import check_file, write_atomically

CONTAINERS = ("WAV", "WAVEX", "RF64", "FLAC")
# sample formats that keep what was recorded, and the value their integers are divided by (floats: 1)
FULL_SCALE = {
    "PCM_S8": 2.0**7,
    "PCM_U8": 2.0**7,
    "PCM_16": 2.0**15,
    "PCM_24": 2.0**23,
    "PCM_32": 2.0**31,
    "FLOAT": 1.0,
    "DOUBLE": 1.0,
}
RATES = range(1000, 768_001)  # Hz; others are no sound, and would multiply its length when it is resampled
_MOST_CHANNELS = 64
_MOST_SAMPLES = 1 << 31  # of all channels of a file
_MOST_IN_MEMORY = 1 << 27  # samples read at once: an hour and a half at 22050 Hz
_MOST_CHUNKS = 10_000  # of a WAV file before its samples
UNKNOWN_LENGTH = 0xFFFFFFFF  # what a WAV written to a pipe announces; such a file ends where it ends
_BLOCK = 1 << 16  # samples written at once: libsndfile crashes where Ogg Vorbis gets minutes of sound in one piece


@dataclass(frozen=True)
class SoundFormat:
    """A kind of file that sound is written as."""

    container: str  # in libsndfile's words, as the next
    subtype: str
    rates: Container[int]  # Hz; what its encoder takes, and libvorbis crashes at others


SOUND_FORMATS = {  # by the name's suffix
    ".wav": SoundFormat("WAV", "PCM_16", range(1, 1 << 31)),
    ".flac": SoundFormat("FLAC", "PCM_16", range(1, 655351)),
    ".ogg": SoundFormat("OGG", "VORBIS", range(4000, 192001)),
    ".mp3": SoundFormat("MP3", "MPEG_LAYER_III", (8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000)),
}
SOUND_SUFFIXES = f"{', '.join(list(SOUND_FORMATS)[:-1])} or {list(SOUND_FORMATS)[-1]}"  # for messages


@dataclass(frozen=True)
class WavInfo:
    """What the header of a usable recording says."""

    n_samples: int
    sampling_rate: int  # Hz


def check_wav(path: Path, *, sampling_rate: int | None, where: str = "", max_wav_value: float | None = None) -> WavInfo:
    """Refuse, from its header alone, a file that ``load_wav`` would refuse; the samples are not read.

    Only non-finite samples, samples beyond [-1, 1] and damage in the middle of a FLAC file are left for
    ``load_wav`` to find. ``sampling_rate`` (Hz) None accepts any. ``max_wav_value`` demands integer samples of
    that full scale, 2**depth / 2 (1 for float samples). ``where`` (``list.txt:7``) is named in the AudioError.
    """
    with open_wav(path, where=where) as file:
        return _check(file, path, sampling_rate=sampling_rate, where=where, max_wav_value=max_wav_value)


def load_wav(
    path: Path,
    *,
    sampling_rate: int | None,
    where: str = "",
    max_wav_value: float | None = None,
    start: int = 0,
    n_samples: int | None = None,
) -> Tensor:
    """Read a mono recording: (T,) float32 in [-1, 1], integers divided by the full scale of their own depth.

    ``start`` and ``n_samples`` choose a part that must lie within it; all of it by default. Other arguments as for
    ``check_wav``. Raises AudioError, one line naming the file and ``where``.
    """
    with open_wav(path, where=where) as file:
        info = _check(file, path, sampling_rate=sampling_rate, where=where, max_wav_value=max_wav_value)
        wanted = info.n_samples - start if n_samples is None else n_samples
        if wanted > _MOST_IN_MEMORY:
            raise AudioError(f"{path}: {wanted} samples, expected at most {_MOST_IN_MEMORY}{at(where)}; cut it")
        try:
            file.seek(start)
            samples = file.read(wanted, dtype="float32")
        except soundfile.LibsndfileError as error:
            raise AudioError(f"{path}: damaged or truncated{at(where)}") from error
    if len(samples) < wanted or wanted < 1:
        raise AudioError(f"{path}: truncated, {start + len(samples)} of {info.n_samples} samples{at(where)}")
    low, high = float(samples.min()), float(samples.max())
    if not (np.isfinite(low) and np.isfinite(high)):  # the smallest and largest of samples with a NaN are NaN
        bad = int(np.flatnonzero(~np.isfinite(samples))[0])
        raise AudioError(f"{path}: sample {bad} is not a finite number{at(where)}")
    if low < -1 or high > 1:
        raise AudioError(f"{path}: samples from {low:g} to {high:g}, expected within [-1, 1]{at(where)}; scale it down")
    return torch.from_numpy(samples)


def open_wav(path: Path, *, where: str = "") -> soundfile.SoundFile:
    """Open a file of any sample format, rate and number of channels, to inspect what ``load_wav`` would refuse.

    One that is missing, damaged or shorter than it announces is an AudioError that names the file and ``where``.
    """
    if check_file(path, where=where, error=AudioError) == 0:
        raise AudioError(f"{path}: an empty file{at(where)}")
    try:
        file = soundfile.SoundFile(path)
    except (soundfile.LibsndfileError, OSError) as error:
        reason = getattr(error, "error_string", str(error)).rstrip(".")
        raise AudioError(f"{path}: not a readable WAV or FLAC file ({reason}){at(where)}") from error
    try:
        _check_header(file, path, where)
        if file.format == "FLAC":
            _check_flac_end(file, path, where)
        elif file.format in CONTAINERS:
            with path.open("rb") as content:
                check_wav_size(content, size=path.stat().st_size, name=str(path), where=where)
    except AudioError:
        file.close()
        raise
    return file


def check_sound_format(path: PurePath, *, sampling_rate: int, where: str = "") -> SoundFormat:
    """How `save_wav` will write ``path``: its suffix decides.

    Raises:
        AudioError: no such format, or none that this machine's libsndfile writes or that holds the sampling rate.
    """
    form = SOUND_FORMATS.get(path.suffix.lower())
    if form is None:
        raise AudioError(f"{path}: expected a name that ends in {SOUND_SUFFIXES}{at(where)}")
    if form.container != "WAV" and form.container not in soundfile.available_formats():
        version = soundfile.__libsndfile_version__
        raise AudioError(
            f"{path}: libsndfile {version} of this machine does not write {form.container}{at(where)}; choose .wav, or "
            "install a newer soundfile"
        )
    if sampling_rate not in form.rates:
        raise AudioError(
            f"{path}: {form.container} does not hold sound of {sampling_rate} Hz{at(where)}; choose .wav or .flac"
        )
    return form


def save_wav(path: Path, wave: Tensor, *, sampling_rate: int, durable: bool = True) -> None:
    """Write ``wave`` (T,), nominally in [-1, 1], atomically, in the format of the suffix (`SOUND_FORMATS`).

    Samples are rounded to 16 bits; louder ones clip, they never wrap. ``durable`` as in
    `common.files.write_atomically`.
    """
    form = check_sound_format(path, sampling_rate=sampling_rate)
    samples = wave.detach().to("cpu", torch.float32).numpy()
    if samples.ndim != 1 or len(samples) == 0:
        raise AudioError(f"{path}: a wave of shape {tuple(samples.shape)} to save, expected (samples,)")
    if not np.isfinite(samples).all():
        raise AudioError(f"{path}: the wave to save holds numbers that are not finite")
    integers = to_int16(samples)

    def write(file: BinaryIO) -> None:
        with soundfile.SoundFile(file, "w", sampling_rate, 1, form.subtype, format=form.container) as sound:
            for start in range(0, len(integers), _BLOCK):
                sound.write(integers[start : start + _BLOCK])

    write_atomically(path, write, durable=durable)


def pcm16(wave: Tensor) -> bytes:
    """Samples (T,) of [-1, 1] as 16-bit integers, little endian; what goes beyond full scale is clipped."""
    return to_int16(wave.numpy()).astype("<i2").tobytes()


def to_int16(samples: np.ndarray) -> np.ndarray:
    """Samples (T,) of [-1, 1] as 16-bit integers; what goes beyond full scale is clipped, it never wraps."""
    return np.clip(np.round(samples * 32768.0), -32768, 32767).astype(np.int16)


def wav_header(sampling_rate: int) -> bytes:
    """What begins a mono WAV of 16-bit integers whose length is not known yet, for a pipe or a response in pieces."""
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, sampling_rate, 2 * sampling_rate, 2, 16)
    return b"RIFF" + struct.pack("<I", UNKNOWN_LENGTH) + b"WAVE" + form + b"data" + struct.pack("<I", UNKNOWN_LENGTH)


def _check(
    file: soundfile.SoundFile, path: Path, *, sampling_rate: int | None, where: str, max_wav_value: float | None
) -> WavInfo:
    if file.format not in CONTAINERS or file.subtype not in FULL_SCALE:
        kind = f"{file.format} file with {file.subtype} samples"
        raise AudioError(f"{path}: {kind}, expected WAV or FLAC with integer or float samples{at(where)}")
    if file.channels != 1:
        raise AudioError(f"{path}: {file.channels} channels, expected 1{at(where)}; mix it down to mono")
    if sampling_rate is not None and file.samplerate != sampling_rate:
        raise AudioError(
            f"{path}: {file.samplerate} Hz, expected {sampling_rate}{at(where)}; "
            f"resample it or pass --sampling-rate {file.samplerate}"
        )
    scale = FULL_SCALE[file.subtype]
    if max_wav_value is not None and scale != max_wav_value:
        raise AudioError(
            f"{path}: {file.subtype} samples have full scale {scale:.0f}, --max-wav-value demands "
            f"{max_wav_value:g}{at(where)}; leave the option out to accept every depth"
        )
    if file.frames == 0:
        raise AudioError(f"{path}: no samples{at(where)}")
    return WavInfo(n_samples=file.frames, sampling_rate=file.samplerate)


def _check_header(file: soundfile.SoundFile, path: Path, where: str) -> None:
    """Refuse numbers by which the sound would take much more memory or time than its file."""
    if file.samplerate not in RATES:
        raise AudioError(f"{path}: {file.samplerate} Hz, expected {RATES[0]} to {RATES[-1]}{at(where)}")
    if file.channels > _MOST_CHANNELS:
        raise AudioError(f"{path}: {file.channels} channels, expected 1{at(where)}; mix it down to mono")
    if file.frames * file.channels > _MOST_SAMPLES:
        raise AudioError(f"{path}: {file.frames} samples, expected at most {_MOST_SAMPLES}{at(where)}; cut it")


def _check_flac_end(file: soundfile.SoundFile, path: Path, where: str) -> None:
    """The last announced sample must be there; seeking finds it without decoding the rest."""
    if file.frames == 0:
        return
    try:
        file.seek(file.frames - 1)
        found = len(file.read(1))
        file.seek(0)
    except soundfile.LibsndfileError as error:
        raise AudioError(f"{path}: damaged or truncated, it announces {file.frames} samples{at(where)}") from error
    if found != 1:
        raise AudioError(f"{path}: truncated, it announces {file.frames} samples{at(where)}")


def check_wav_size(file: BinaryIO, *, size: int, name: str, where: str = "") -> None:
    """Compare the announced size of the samples with the ``size`` of all: libsndfile reads a truncated WAV silently.

    Chunks follow the 12 bytes of ``RIFF <size> WAVE``, each an identifier, a 4-byte length and that many bytes,
    padded to an even number. RF64 puts the true 64-bit length of the data in a ``ds64`` chunk before it.
    """
    head = file.read(12)
    order = ">" if head[:4] == b"RIFX" else "<"
    long_length = None
    for _ in range(_MOST_CHUNKS):
        if len(chunk := file.read(8)) < 8:
            break
        length = struct.unpack(order + "I", chunk[4:])[0]
        if chunk[:4] == b"ds64":
            long_length = int.from_bytes(file.read(min(length, 16))[8:], "little")  # of a damaged one: 0
            file.seek(max(length - 16, 0), 1)
            continue
        if chunk[:4] == b"data":
            if length == UNKNOWN_LENGTH:
                length = long_length
            if length is not None and file.tell() + length > size:
                held = size - file.tell()
                raise AudioError(f"{name}: truncated, {held} of {length} bytes of samples{at(where)}")
            return
        file.seek(length + length % 2, 1)
    raise AudioError(f"{name}: a WAV file without sample data; is it truncated?{at(where)}")


_QUALITY = "HQ"  # of soxr; 79 dB from SoX itself


def resample(wave: Tensor, *, ratio: float) -> Tensor:
    """(T,) -> (round(T x ratio),), at least one sample; the same wave where ``ratio``, new rate by old, is 1."""
    if ratio == 1:
        return wave
    n_samples = max(math.floor(len(wave) * ratio + 0.5), 1)
    samples = soxr.resample(wave.numpy(), 1.0, ratio, quality=_QUALITY)[:n_samples]
    return F.pad(torch.from_numpy(samples), (0, n_samples - len(samples)))
