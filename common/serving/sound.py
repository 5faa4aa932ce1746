"""Encode sound piece by piece for answers, and decode uploads."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import soundfile
import soxr
import torch
from torch import Tensor

from common.audio.decoding import decode
from common.audio.wav import SOUND_FORMATS, rate_for, to_int16, wav_header
from common.errors import AudioError

_OPUS_RATES, _MPEG_RATES = SOUND_FORMATS[".opus"].rates, SOUND_FORMATS[".mp3"].rates
SUBTITLES = {"srt": "application/x-subrip; charset=utf-8", "vtt": "text/vtt"}  # kinds and their Content-Type


FORMATS: dict[str, tuple[str, tuple[int, ...]]] = {  # by response_format: Content-Type, and the rates (Hz) or ()
    "mp3": ("audio/mpeg", _MPEG_RATES),
    "opus": ("audio/ogg; codecs=opus", _OPUS_RATES),
    "aac": ("audio/aac", _MPEG_RATES),
    "flac": ("audio/flac", ()),
    "wav": ("audio/wav", ()),
    "pcm": ("audio/pcm", (24000,)),  # the rate that OpenAI's clients take it to have
    "ogg": ("audio/ogg", ()),
}
_FFMPEG = {"opus": ("ogg", "libopus"), "aac": ("adts", "aac")}  # containers and codecs; libsndfile writes the others
USUAL_FORMAT = "mp3"
_SETTINGS = {"mp3": {"bitrate_mode": "CONSTANT", "compression_level": 0.5}}  # players know its length by the bit rate
_BIT_RATE = 64_000  # bits/s of Opus and AAC
_SHORT_PAGES = {"page_duration": "20000"}  # us; of Ogg, so that what is encoded goes out at once
_BLOCK = 1 << 16  # samples that are encoded at once


class Encoder:
    """Turns pieces of a wave into the bytes of one file, as they come.

    A wav's header announces an unknown length (0xFFFFFFFF), which players take to last until the data ends; pcm is
    signed 16-bit little-endian without any header. A flac comes whole at the end: its header must have the number of
    samples. Sound of a rate that a format does not hold is resampled.
    """

    def __init__(self, form: str, *, sampling_rate: int) -> None:
        """``form`` is one of `FORMATS`; ``sampling_rate`` (Hz) is the wave's."""
        self.media_type, rates = FORMATS[form]
        self.sampling_rate = rate = rate_for(sampling_rate, rates)  # Hz, of what comes out
        self.is_quick = form in ("wav", "pcm")  # to encode: there is nothing to compress
        self._is_whole = form == "flac"
        self._bytes = io.BytesIO()
        self._n_taken = 0  # bytes; what libsndfile writes there again at the end has no effect
        self._resampler = None
        if rate != sampling_rate:
            self._resampler = soxr.ResampleStream(sampling_rate, rate, 1, dtype="float32", quality="HQ")
        self._close: Callable[[], object] = lambda: None
        if self.is_quick:
            self._bytes.write(wav_header(rate) if form == "wav" else b"")
            self._write: Callable[[np.ndarray], object] = lambda part: self._bytes.write(part.astype("<i2").tobytes())
        elif form in _FFMPEG:
            self._write, self._close = _ffmpeg(self._bytes, *_FFMPEG[form], rate)
        else:
            kind, options = SOUND_FORMATS[f".{form}"], _SETTINGS.get(form, {})
            file: Any = soundfile.SoundFile(self._bytes, "w", rate, 1, kind.subtype, format=kind.container, **options)
            self._write, self._close = file.write, file.close

    def encode(self, wave: Tensor) -> bytes:
        """The bytes that wave (T,), nominally in [-1, 1], adds: none, while the encoder gathers a block."""
        self._add(wave.numpy(), last=False)
        return b"" if self._is_whole else self._take()

    def finish(self) -> bytes:
        """The file's last bytes."""
        self._add(np.zeros(0, np.float32), last=True)
        self._close()
        return self._take()

    def _add(self, samples: np.ndarray, *, last: bool) -> None:
        if self._resampler is not None:
            samples = self._resampler.resample_chunk(samples, last=last)
        integers = to_int16(samples)
        for start in range(0, len(integers), _BLOCK):
            self._write(integers[start : start + _BLOCK])

    def _take(self) -> bytes:
        with self._bytes.getbuffer() as written:
            taken = bytes(written[self._n_taken :])
        self._n_taken += len(taken)
        return taken


def _ffmpeg(target: io.BytesIO, kind: str, codec: str, rate: int) -> tuple[Callable[[np.ndarray], Any], Callable]:
    """What writes samples (T,) int16 of ``rate`` Hz to a target by FFmpeg, and what ends the file."""
    try:
        import av  # here, as these two formats alone need it
    except ImportError as error:
        raise AudioError("response_format: opus and aac need the package av on the server") from error
    pages = _SHORT_PAGES if kind == "ogg" else {}
    container = av.open(target, "w", format=kind, options={"flush_packets": "1"} | pages)
    stream: Any = container.add_stream(codec, rate=rate, layout="mono", bit_rate=_BIT_RATE)
    n_written = 0

    def write(samples: np.ndarray) -> None:
        nonlocal n_written
        frame = av.AudioFrame.from_ndarray(samples[None], format="s16", layout="mono")
        frame.sample_rate, frame.pts = rate, n_written
        n_written += len(samples)
        container.mux(stream.encode(frame))

    def close() -> None:
        container.mux(stream.encode(None))
        container.close()

    return write, close


def decode_upload(data: bytes, *, sampling_rate: int, max_seconds: float) -> Tensor:
    """An upload -> (T,) float32; raises AudioError where it is no sound, damaged, or longer than ``max_seconds``."""
    blocks, n_samples = list[np.ndarray](), 0
    for block in decode(data, sampling_rate=sampling_rate, name="file").blocks:
        blocks.append(block)
        n_samples += len(block)
        if n_samples > max_seconds * sampling_rate:
            raise AudioError(f"file: longer than {max_seconds:g} s, the limit")
    if not n_samples:
        raise AudioError("file: no samples")
    return torch.from_numpy(np.concatenate(blocks))
