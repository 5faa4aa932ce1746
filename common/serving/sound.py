"""Sound as bytes: encoded piece by piece for an answer, decoded from memory for a transcript."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import soundfile
import soxr
from torch import Tensor

from common.audio.decoding import MOST_CHANNELS, RATES
from common.audio.wav import SOUND_FORMATS, rate_for, to_int16, wav_header
from common.errors import AudioError, shown
from common.synthesis.imitation import load_recording

_OPUS_RATES, _MPEG_RATES = SOUND_FORMATS[".opus"].rates, SOUND_FORMATS[".mp3"].rates
SUBTITLES = {"srt": "application/x-subrip; charset=utf-8", "vtt": "text/vtt"}  # kinds and their Content-Type


@dataclass(frozen=True)
class Format:
    """A form in which sound is answered."""

    media_type: str  # Content-Type
    rates: tuple[int, ...] = ()  # Hz that it holds; empty: any
    codec: tuple[str, str] | None = None  # FFmpeg's container and codec; None: libsndfile writes it, or nothing has to


FORMATS = {  # by response_format
    "mp3": Format("audio/mpeg", _MPEG_RATES),
    "opus": Format("audio/ogg; codecs=opus", _OPUS_RATES, ("ogg", "libopus")),
    "aac": Format("audio/aac", _MPEG_RATES, ("adts", "aac")),
    "flac": Format("audio/flac"),
    "wav": Format("audio/wav"),
    "pcm": Format("audio/pcm", (24000,)),  # the rate that OpenAI's clients take it to have
    "ogg": Format("audio/ogg"),
}
USUAL_FORMAT = "mp3"
_SETTINGS = {"mp3": {"bitrate_mode": "CONSTANT", "compression_level": 0.5}}
_BIT_RATE = 64_000  # bits/s of Opus and AAC
_SHORT_PAGES = {"page_duration": "20000"}  # us; of Ogg, so that what is encoded goes out at once
_BLOCK = 1 << 16  # samples that are encoded or decoded at once


class Encoder:
    """Turns pieces of a wave into the bytes of one file, as they come.

    A wav's header announces an unknown length (0xFFFFFFFF), which players take to last until the data ends; pcm is
    signed 16-bit little-endian without any header. An mp3 has a constant bit rate, by which players know its length. A
    flac comes whole at the end: its header must have the number of samples. Sound of a rate that a format does not hold
    is resampled.
    """

    def __init__(self, form: str, *, sampling_rate: int) -> None:
        """``form`` is one of `FORMATS`; ``sampling_rate`` (Hz) is the wave's."""
        described = FORMATS[form]
        self.media_type = described.media_type
        self.sampling_rate = rate = rate_for(sampling_rate, described.rates)  # Hz, of what comes out
        self.is_quick = form in ("wav", "pcm")  # to encode: there is nothing to compress
        self._bytes = io.BytesIO()
        self._n_taken = 0  # bytes; what libsndfile writes there again at the end has no effect
        self._is_whole = form == "flac"
        self._resampler = None
        if rate != sampling_rate:
            self._resampler = soxr.ResampleStream(sampling_rate, rate, 1, dtype="float32", quality="HQ")
        self._write: Callable[[np.ndarray], object] = lambda samples: self._bytes.write(samples.astype("<i2").tobytes())
        self._close: Callable[[], object] = lambda: None
        if form == "wav":
            self._bytes.write(wav_header(rate))
        elif described.codec is not None:
            self._write, self._close = _ffmpeg(self._bytes, described.codec, rate)
        elif form != "pcm":
            kind = SOUND_FORMATS[f".{form}"]
            options: dict[str, Any] = _SETTINGS.get(form, {})
            file = soundfile.SoundFile(self._bytes, "w", rate, 1, kind.subtype, format=kind.container, **options)
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


def _ffmpeg(
    target: io.BytesIO, codec: tuple[str, str], rate: int
) -> tuple[Callable[[np.ndarray], None], Callable[[], None]]:
    """What writes samples (T,) int16 of ``rate`` Hz to a target by FFmpeg, and what ends the file.

    Raises:
        AudioError: the package av is not installed.
    """
    try:
        import av  # here, as these two formats alone need it
    except ImportError as error:
        raise AudioError("response_format: opus and aac need the package av on the server") from error

    pages = _SHORT_PAGES if codec[0] == "ogg" else {}
    container = av.open(target, "w", format=codec[0], options={"flush_packets": "1"} | pages)
    stream: Any = container.add_stream(codec[1], rate=rate, layout="mono", bit_rate=_BIT_RATE)
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


def wav_bytes(wave: Tensor, *, sampling_rate: int) -> bytes:
    """wave (T,) as a complete WAV file of 16 bits."""
    file = io.BytesIO()
    soundfile.write(file, to_int16(wave.numpy()), sampling_rate, subtype="PCM_16", format="WAV")
    return file.getvalue()


def check_form(what: str, rate: int, channels: int) -> None:
    """Raise AudioError for a recording of a rate (Hz) or number of channels that no recorder has."""
    if not (RATES[0] <= rate <= RATES[1] and 1 <= channels <= MOST_CHANNELS):
        wanted = f"expected {RATES[0]} to {RATES[1]} Hz and 1 to {MOST_CHANNELS} channels"
        raise AudioError(f"{what}: {shown(rate)} Hz and {shown(channels)} channels, {wanted}")


def decode(data: bytes, *, sampling_rate: int, max_seconds: float) -> Tensor:
    """An uploaded recording -> (T,) float32 at ``sampling_rate``, mixed down to mono; read from memory alone.

    Raises:
        AudioError: not a sound file, damaged, or longer than ``max_seconds``.
    """
    wave = load_recording(data, sampling_rate=sampling_rate, max_seconds=max_seconds, name="file")
    if not len(wave):
        raise AudioError("file: no samples")
    return wave
