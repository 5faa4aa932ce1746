"""Sound as bytes: encoded piece by piece for an answer, decoded from memory for a transcript."""

import io
from pathlib import PurePath

import soundfile
import torch
from torch import Tensor

from common.audio import check_complete, check_sound_format, pcm16, resample, to_int16, wav_header
from common.errors import AudioError

# response_format -> Content-Type
FORMATS = {"wav": "audio/wav", "pcm": "audio/pcm", "flac": "audio/flac", "ogg": "audio/ogg", "mp3": "audio/mpeg"}
_SETTINGS = {"mp3": {"bitrate_mode": "CONSTANT", "compression_level": 0.5}}
_BLOCK = 1 << 16  # samples that are encoded at once


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
        self._head = wav_header(sampling_rate) if form == "wav" else b""
        self._bytes = io.BytesIO()
        self._n_taken = 0  # bytes; what libsndfile writes there again at the end has no effect
        self._is_whole = form == "flac"
        self._file = None
        self.is_quick = form in ("wav", "pcm")  # to encode: there is nothing to compress
        if not self.is_quick:
            kind = check_sound_format(PurePath(f"speech.{form}"), sampling_rate=sampling_rate)
            self._file = soundfile.SoundFile(
                self._bytes, "w", sampling_rate, 1, kind.subtype, format=kind.container, **_SETTINGS.get(form, {})
            )

    def encode(self, wave: Tensor) -> bytes:
        """The bytes that wave (T,), nominally in [-1, 1], adds: none, while the encoder gathers a block."""
        if self._file is None:
            head, self._head = self._head, b""
            return head + pcm16(wave)
        samples = to_int16(wave.numpy())
        for start in range(0, len(samples), _BLOCK):
            self._file.write(samples[start : start + _BLOCK])
        return b"" if self._is_whole else self._take()

    def finish(self) -> bytes:
        """The file's last bytes."""
        if self._file is None:
            return b""
        self._file.close()
        return self._take()

    def _take(self) -> bytes:
        with self._bytes.getbuffer() as written:
            taken = bytes(written[self._n_taken :])
        self._n_taken += len(taken)
        return taken


def wav_bytes(wave: Tensor, *, sampling_rate: int) -> bytes:
    """wave (T,) as a complete WAV file of 16 bits."""
    file = io.BytesIO()
    soundfile.write(file, to_int16(wave.numpy()), sampling_rate, subtype="PCM_16", format="WAV")
    return file.getvalue()


def decode(data: bytes, *, sampling_rate: int, max_seconds: float) -> Tensor:
    """An uploaded recording -> (T,) float32 at ``sampling_rate``, mixed down to mono; read from memory alone.

    Raises:
        AudioError: not a sound file, damaged, or longer than ``max_seconds``.
    """
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            rate, most = file.samplerate, round(max_seconds * file.samplerate)
            wave = file.read(most + 1, dtype="float32", always_2d=True).mean(axis=1)
            if file.format in ("WAV", "WAVEX", "RF64"):
                check_complete(file, name="file")
    except soundfile.LibsndfileError as error:
        reason = error.error_string.rstrip(".")
        raise AudioError(f"file: not a readable WAV, FLAC, Ogg or MP3 file ({reason})") from error
    if len(wave) > most:
        raise AudioError(f"file: longer than {max_seconds:g} s, this server's limit")
    if not len(wave):
        raise AudioError("file: no samples")
    return resample(torch.from_numpy(wave), ratio=sampling_rate / rate)
