"""Sound as bytes: encoded piece by piece for an answer, decoded from memory for a transcript."""

import io
from pathlib import PurePath
from types import MappingProxyType

import numpy as np
import soundfile
import torch
from torch import Tensor

from common.audio import SOUND_FORMATS, check_complete, check_sound_format, pcm16, resample, to_int16, wav_header
from common.errors import AudioError

FORMATS = MappingProxyType(  # response_format -> Content-Type
    {"wav": "audio/wav", "pcm": "audio/pcm", "flac": "audio/flac", "ogg": "audio/ogg", "mp3": "audio/mpeg"}
)
_SETTINGS = MappingProxyType({"mp3": {"bitrate_mode": "CONSTANT", "compression_level": 0.5}})
_UNKNOWN = 1 << 62  # samples; libsndfile has this many, or more, where a header does not say
_READABLE = ("WAV", "WAVEX", "RF64", "FLAC", "OGG", "MP3")
_RATES = range(4000, 384001)  # Hz
_MAX_CHANNELS = 2
_BLOCK = 1 << 16  # samples that are decoded, or encoded, at once


class Encoder:
    """Turns pieces of a wave into the bytes of one file, as they come.

    A wav's header announces an unknown length (0xFFFFFFFF), which players take to last until the data ends; pcm is
    signed 16-bit little-endian without any header. An mp3 has a constant bit rate, by which players know its length. A
    flac comes whole at the end: its header must have the number of samples.
    """

    def __init__(self, form: str, *, sampling_rate: int) -> None:
        """``form`` is one of `FORMATS`.

        Raises:
            AudioError: the format does not hold that sampling rate, or this machine's libsndfile does not write it.
        """
        self._pipe = _Pipe()
        self._whole = form == "flac"
        self._file = None
        self.is_quick = form in ("wav", "pcm")  # to encode: there is nothing to compress
        if form == "wav":
            self._pipe.write(wav_header(sampling_rate))
        elif form != "pcm":
            kind = check_sound_format(PurePath(f"speech.{form}"), sampling_rate=sampling_rate)
            self._file = soundfile.SoundFile(
                self._pipe, "w", sampling_rate, 1, kind.subtype, format=kind.container, **_SETTINGS.get(form, {})
            )

    def encode(self, wave: Tensor) -> bytes:
        """The bytes that wave (T,), nominally in [-1, 1], adds: none, while the encoder gathers a block."""
        if self._file is None:
            self._pipe.write(pcm16(wave))
        else:
            samples = to_int16(wave.numpy())
            for start in range(0, len(samples), _BLOCK):
                self._file.write(samples[start : start + _BLOCK])
        return b"" if self._whole else self._pipe.take()

    def finish(self) -> bytes:
        """The file's last bytes."""
        if self._file is not None:
            self._file.close()
        return self._pipe.take()


class _Pipe:
    """What libsndfile writes a file to whose beginning has been sent already: rewriting that has no effect.

    At the end it writes totals into the first frame of an MP3 file, which decodes to silence without them.
    """

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._taken = 0  # bytes
        self._position = 0

    def write(self, data: bytes) -> int:
        data = bytes(data)
        fresh = data[max(self._taken - self._position, 0) :]
        start = max(self._position - self._taken, 0)
        self._waiting[start : start + len(fresh)] = fresh
        self._position += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._taken + len(self._waiting)}
        self._position = base[whence] + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1) -> bytes:
        return b""  # nothing of what was written is read again

    def flush(self) -> None: ...

    def take(self) -> bytes:
        taken = bytes(self._waiting)
        self._taken += len(taken)
        self._waiting.clear()
        return taken


def wav_bytes(wave: Tensor, *, sampling_rate: int) -> bytes:
    """wave (T,) as a complete WAV file of 16 bits."""
    file = io.BytesIO()
    soundfile.write(file, to_int16(wave.numpy()), sampling_rate, subtype="PCM_16", format="WAV")
    return file.getvalue()


class _Upload(io.BytesIO):
    """A file in memory, which a damaged header cannot make print a traceback by seeking before its beginning."""

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return super().seek(max(offset, 0) if whence == io.SEEK_SET else offset, whence)


def decode(data: bytes, *, sampling_rate: int, max_seconds: float) -> Tensor:
    """An uploaded recording -> (T,) float32 at ``sampling_rate``, mixed down to mono; read from memory alone.

    Raises:
        AudioError: not a WAV, FLAC, Ogg or MP3 file, damaged, or longer than ``max_seconds``.
    """
    try:
        with soundfile.SoundFile(_Upload(data)) as file:
            _check_header(file, max_seconds)
            blocks, left = [], round(max_seconds * file.samplerate) + 1
            while left > 0 and len(block := file.read(min(_BLOCK, left), dtype="float32", always_2d=True)):
                blocks.append(block.mean(axis=1))
                left -= len(block)
            rate = file.samplerate
            if file.format == "FLAC" and sum(map(len, blocks)) < file.frames < _UNKNOWN:
                raise AudioError(f"file: truncated, it announces {file.frames} samples")
            if file.format in ("WAV", "WAVEX", "RF64"):
                check_complete(file, name="file")
    except soundfile.LibsndfileError as error:
        reason = error.error_string.rstrip(".")
        raise AudioError(f"file: not a readable WAV, FLAC, Ogg or MP3 file ({reason})") from error
    if left <= 0:
        raise _too_long(max_seconds)
    if not blocks:
        raise AudioError("file: no samples")
    wave = np.concatenate(blocks)
    if not np.isfinite(wave).all():
        raise AudioError("file: samples that are not finite numbers")
    return resample(torch.from_numpy(wave), ratio=sampling_rate / rate)


def _check_header(file: soundfile.SoundFile, max_seconds: float) -> None:
    if file.format not in _READABLE:
        raise AudioError(f"file: {file.format}, expected WAV, FLAC, Ogg or MP3")
    if file.channels > _MAX_CHANNELS:
        raise AudioError(f"file: {file.channels} channels, expected at most {_MAX_CHANNELS}")
    if file.samplerate not in _RATES:
        raise AudioError(f"file: {file.samplerate} Hz, expected {_RATES[0]} to {_RATES[-1]}")
    if max_seconds * file.samplerate < file.frames < _UNKNOWN:
        raise _too_long(max_seconds)


def _too_long(max_seconds: float) -> AudioError:
    return AudioError(f"file: longer than {max_seconds:g} s, this server's limit")


assert set(FORMATS) - {"pcm"} == {suffix[1:] for suffix in SOUND_FORMATS}
