"""Decodes sound files of many formats to blocks of mono samples, with libsndfile or else FFmpeg (PyAV).

Files are untrusted: containers, codecs, rate, channels and length are limited, and no file can refer to another one.
"""

import io
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import soxr

from common.audio.wav import check_complete
from common.errors import AudioError, reason
from common.files import check_file

BLOCK = 1 << 16  # samples decoded at a time
RATES = (4000, 384000)  # Hz: the lowest and the highest
MOST_CHANNELS = 32
LONGEST = 12  # hours
_NO_SOUND_FILE = "not a sound file that libsndfile or FFmpeg can decode, or empty or truncated"
# libsndfile's containers, the first words of its codecs' names, and FFmpeg's containers and codecs
_CONTAINERS = ("AIFF", "AU", "CAF", "FLAC", "MP3", "NIST", "OGG", "RF64", "W64", "WAV", "WAVEX")
_CODECS = ("ALAC", "ALAW", "DOUBLE", "FLOAT", "GSM610", "IMA", "MPEG", "MS", "OPUS", "PCM", "ULAW", "VORBIS")
_FFMPEG = {
    "format_whitelist": "aac,ac3,aiff,amr,asf,au,avi,caf,flac,flv,matroska,mov,mp3,mpeg,mpegts,ogg,w64,wav,wv",
    "protocol_whitelist": "",
    "codec_whitelist": "aac,ac3,adpcm_ima_qt,adpcm_ima_wav,adpcm_ms,alac,amrnb,amrwb,eac3,flac,gsm,gsm_ms,"
    "libopencore_amrnb,libopencore_amrwb,libopus,mp2,mp2float,mp3,mp3float,opus,pcm_alaw,pcm_f32be,pcm_f32le,pcm_f64be,"
    "pcm_f64le,pcm_mulaw,pcm_s16be,pcm_s16le,pcm_s24be,pcm_s24le,pcm_s32be,pcm_s32le,pcm_s8,pcm_u8,speex,vorbis,wavpack,"
    "wmalossless,wmapro,wmav1,wmav2,wmavoice",
}
_LEAST_MIXED = 0.03  # share of the channels' power; if seven of eight channels are silent, an eighth is left


@dataclass(frozen=True)
class Decoded:
    """An open recording."""

    sampling_rate: int  # Hz, of the file
    n_channels: int
    blocks: Iterator[np.ndarray]  # (T,) float32, the mean of the channels; may exceed [-1, 1]


def decode(source: Path | bytes, *, sampling_rate: int | None = None, name: str = "") -> Decoded:
    """Open a recording (a file or its bytes) in any format; ``blocks`` are resampled to ``sampling_rate``, if given.

    Errors call it ``name`` (default: its path). Raises AudioError if it isn't a sound file within the limits. Reading
    ``blocks`` raises AudioError if it's damaged or too long, or a sample isn't finite.
    """
    name = name or str(source)
    if isinstance(source, Path):
        check_file(source, error=AudioError)
    try:
        file = soundfile.SoundFile(source if isinstance(source, Path) else io.BytesIO(source))
    except (soundfile.LibsndfileError, OSError, TypeError):  # TypeError: a name that ends in .raw
        rate, n_channels, blocks = _decode_by_ffmpeg(source, name)
    else:
        if file.format not in _CONTAINERS or file.subtype.split("_")[0] not in _CODECS:
            file.close()
            raise AudioError(f"{name}: {file.format} with {file.subtype} samples is not supported; convert it to WAV")
        check_complete(file, name=name)
        rate, n_channels, blocks = file.samplerate, file.channels, _read_blocks(file, name)
    if not (RATES[0] <= rate <= RATES[1] and n_channels <= MOST_CHANNELS):
        limits = f"expected {RATES[0]} to {RATES[1]} Hz and at most {MOST_CHANNELS} channels"
        raise AudioError(f"{name}: {rate} Hz, {n_channels} channels, {limits}")
    mono = _mixed_down(blocks, name, longest=LONGEST * 3600 * rate)
    return Decoded(rate, n_channels, mono if sampling_rate in (None, rate) else _resampled(mono, rate, sampling_rate))


def _read_blocks(file: soundfile.SoundFile, name: str) -> Iterator[np.ndarray]:
    """Yield blocks (T, channels) of an open file; close it at the end."""
    n_read, announced = 0, file.frames
    with file:
        try:
            while len(samples := file.read(BLOCK, dtype="float32", always_2d=True)):
                n_read += len(samples)
                yield samples
        except soundfile.LibsndfileError as error:
            raise AudioError(f"{name}: damaged or truncated") from error
    if n_read < announced * (1 if file.format == "FLAC" else 0.97):  # the length of an MP3 may be an estimate
        raise AudioError(f"{name}: truncated, {n_read} of {announced} samples")


def _mixed_down(blocks: Iterator[np.ndarray], name: str, *, longest: int) -> Iterator[np.ndarray]:
    """Yield the mean (T,) of blocks (T, channels); raises AudioError if the channels cancel each other out."""
    power = power_mixed = 0.0
    n_samples = 0
    for samples in blocks:
        n_samples += len(samples)
        if n_samples > longest:
            raise AudioError(f"{name}: longer than {LONGEST} hours")
        mono, *others = samples.T  # several times faster than ``mean`` over rows
        mono = sum(others, mono) / np.float32(samples.shape[1])
        if not np.isfinite(mono).all():
            raise AudioError(f"{name}: contains non-finite samples")
        power += float(np.vdot(samples, samples)) / samples.shape[1]
        power_mixed += float(np.vdot(mono, mono))
        yield mono
    if power_mixed < power * _LEAST_MIXED:
        raise AudioError(f"{name}: its channels cancel each other out; export one of them")


def _decode_by_ffmpeg(source: Path | bytes, name: str) -> tuple[int, int, Iterator[np.ndarray]]:
    """Return the sampling rate (Hz), the number of channels, and blocks (T, channels)."""
    import av  # here, because only a few recordings need it

    with ExitStack() as opened:
        try:  # an open file, because FFmpeg would read a path as a URL
            file = opened.enter_context(source.open("rb") if isinstance(source, Path) else io.BytesIO(source))
            container = opened.enter_context(av.open(file, container_options=_FFMPEG))
        except (av.FFmpegError, OSError, ValueError) as error:
            raise AudioError(f"{name}: {_NO_SOUND_FILE}") from error
        stream = next(iter(container.streams.audio), None)
        if stream is None:
            raise AudioError(f"{name}: contains no sound")
        codec = getattr(stream.codec_context, "name", "unknown")
        if codec not in _FFMPEG["codec_whitelist"].split(","):
            raise AudioError(f"{name}: codec {codec} is not supported; convert it to WAV")
        if not stream.rate:  # FFmpeg identified it by its suffix alone
            raise AudioError(f"{name}: {_NO_SOUND_FILE}")
        return stream.rate, stream.channels, _ffmpeg_blocks(container, opened.pop_all(), name)


def _ffmpeg_blocks(container: Any, opened: ExitStack, name: str) -> Iterator[np.ndarray]:
    """Yield blocks (T, channels) of the first audio stream, in any sample format; close ``opened`` at the end."""
    import av

    to_planes = av.AudioResampler(format="fltp")
    with opened:
        try:
            for frame in container.decode(audio=0):
                for planes in to_planes.resample(frame):
                    yield planes.to_ndarray().T
        except (av.FFmpegError, OSError, ValueError, IndexError) as error:  # ValueError: the rate or channels change
            raise AudioError(f"{name}: damaged or truncated ({reason(error)})") from error


def _resampled(blocks: Iterator[np.ndarray], old: int, new: int) -> Iterator[np.ndarray]:
    """Resample blocks from rate ``old`` to rate ``new`` (Hz)."""
    stream = soxr.ResampleStream(old, new, 1, dtype="float32", quality="HQ")
    for block in blocks:
        yield stream.resample_chunk(block)
    yield stream.resample_chunk(np.zeros(0, np.float32), last=True)
