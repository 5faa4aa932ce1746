"""Encode sound piece by piece for answers, and decode uploads."""

import io

import numpy as np
import soxr
import torch
from torch import Tensor

from common.audio.decoding import decode
from common.audio.wav import SOUND_FORMATS, SoundFormat, open_encoder, rate_for, to_int16, wav_header
from common.errors import AudioError

SUBTITLES = {"srt": "application/x-subrip; charset=utf-8", "vtt": "text/vtt"}  # kinds and their Content-Type
USUAL_FORMAT = "mp3"
_AT_ONCE = {"flush_packets": "1"}  # of FFmpeg
_OPUS = _AT_ONCE | {"page_duration": "20000"}  # us; short Ogg pages, to send encoded sound immediately
_CONSTANT = {"bitrate_mode": "CONSTANT", "compression_level": 0.5}  # players infer an MP3's length from its bit rate
FORMATS = {  # response_format -> Content-Type and format
    "mp3": ("audio/mpeg", SOUND_FORMATS[".mp3"]._replace(options=_CONSTANT)),
    "opus": ("audio/ogg; codecs=opus", SoundFormat("ogg", "libopus", SOUND_FORMATS[".opus"].rates, _OPUS)),
    "aac": ("audio/aac", SoundFormat("adts", "aac", SOUND_FORMATS[".m4a"].rates, _AT_ONCE)),
    "flac": ("audio/flac", SOUND_FORMATS[".flac"]),
    "wav": ("audio/wav", SOUND_FORMATS[".wav"]),
    "pcm": ("audio/pcm", SoundFormat("RAW", "PCM_16", (24000,))),  # the rate that OpenAI's clients assume
    "ogg": ("audio/ogg", SOUND_FORMATS[".ogg"]),
}


class Encoder:
    """Encodes a wave as a file, piece by piece.

    A wav's header gives an unknown length (0xFFFFFFFF), so players read until the data ends; pcm is signed 16-bit
    little-endian without a header. A flac comes whole at the end, since its header needs the number of samples. If a
    format doesn't support the sampling rate, the sound is resampled.
    """

    def __init__(self, form: str, *, sampling_rate: int) -> None:
        """``form`` is one of `FORMATS`; ``sampling_rate`` (Hz) is the wave's."""
        self.media_type, kind = FORMATS[form]
        self.sampling_rate = rate = rate_for(sampling_rate, kind.rates)  # Hz, of the output
        self.is_quick = form in ("wav", "pcm")  # to encode, since nothing is compressed
        self._is_whole = form == "flac"
        self._bytes = io.BytesIO()
        self._n_taken = 0  # bytes; libsndfile may rewrite these at the end, without effect
        self._resampler = None
        if rate != sampling_rate:
            self._resampler = soxr.ResampleStream(sampling_rate, rate, 1, dtype="float32", quality="HQ")
        self._bytes.write(wav_header(rate) if form == "wav" else b"")
        if not self.is_quick:
            self._write, self._close = open_encoder(self._bytes, kind, rate)

    def encode(self, wave: Tensor, *, last: bool = False) -> bytes:
        """Encode a wave (T,), nominally in [-1, 1], and end the file if it's the ``last``.

        Returns no bytes while the encoder fills a block.
        """
        samples = wave.numpy()
        if self._resampler is not None:
            samples = self._resampler.resample_chunk(samples, last=last)
        integers = to_int16(samples)
        if self.is_quick:
            self._bytes.write(integers.tobytes())
        elif len(integers):
            self._write(integers)
        if last and not self.is_quick:
            self._close()
        if self._is_whole and not last:
            return b""
        with self._bytes.getbuffer() as written:
            taken = bytes(written[self._n_taken :])
        self._n_taken += len(taken)
        return taken


def decode_upload(data: bytes, *, sampling_rate: int, max_seconds: float) -> Tensor:
    """Decode an upload to (T,) float32; raises AudioError if it isn't sound, is damaged or exceeds ``max_seconds``."""
    blocks, n_samples = list[np.ndarray](), 0
    for block in decode(data, sampling_rate=sampling_rate, name="file").blocks:
        blocks.append(block)
        n_samples += len(block)
        if n_samples > max_seconds * sampling_rate:
            raise AudioError(f"file: longer than {max_seconds:g} s, the limit")
    if not n_samples:
        raise AudioError("file: no samples")
    return torch.from_numpy(np.concatenate(blocks))
