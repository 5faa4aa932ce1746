"""A request to speak: what it asks for, checked against the voice, and its sound as an answer's bytes."""

import asyncio
import base64
import binascii
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import torch
from torch import Tensor

from common.config import to_plain
from common.errors import InputError, shown
from common.serving.errors import ApiError, error_body, without_options
from common.serving.log import RequestRecord
from common.serving.models import VOICES, ServedModels
from common.serving.schema import SpeechRequest
from common.serving.sound import Encoder, wav_bytes
from common.serving.worker import SpeechJob
from common.synthesis.imitation import imitate, load_recording
from common.synthesis.speech import Speech, parse_prosody
from common.synthesis.utterances import Phrase, SynthesisInput, SynthesisResult, dropped_symbols, silences
from common.synthesis.voice import Voice
from common.text.prosody import Style
from common.text.ssml import has_markup

_SLOWEST = 0.1  # of the usual rate, all factors multiplied
_LONGEST_UTTERANCE = 120.0  # s
_LONGEST = 900.0  # s
_SYMBOL = 0.06  # s, about, at the usual rate
_WRITTEN_OUT = 4  # symbols that a text may have when it is written out, for each character that it may have


def plan(request: SpeechRequest, models: ServedModels, *, max_characters: int) -> tuple[list[SynthesisInput], str]:
    """The utterances that a request asks for, all of it checked, and what was left out; no network runs.

    Raises:
        ApiError, InputError: what cannot be spoken; says why.
    """
    voice = models.voice
    for name in ("speed", "pitch"):
        if getattr(request, name) not in (None, 1.0) and not voice.shapes_prosody:
            raise ApiError(400, f"{name}: {models.voice_name} cannot change it; leave it out")
    volume = 1.0 if request.volume is None else request.volume
    speaker = _speaker(request.voice, models)
    style = Style(rate=request.speed or 1.0, pitch=request.pitch or 1.0, volume=volume, speaker=speaker)
    text = request.input or ""
    where = "input" if request.prosody is None else "prosody"
    phrase = Phrase(where, PurePosixPath("speech.wav"), text)
    if request.prosody is not None:
        table = parse_prosody(request.prosody, where=where)
        n_symbols = sum(1 for one in table.utterances for _ in one.symbols)
        _check_length(f"{where}: {n_symbols} symbols", n_symbols, max_characters)
        inputs, warning = voice.plan(table, style=style, phrase=phrase), ""
    else:
        _check_length(f"{where}: {len(text)} characters", len(text), max_characters)
        if request.ssml is not None and request.ssml != has_markup(text):
            wrong = "holds no SSML" if request.ssml else "holds SSML; write &lt; for a < that is none"
            raise ApiError(400, f"ssml: input {wrong} (ssml is {str(request.ssml).lower()})")
        inputs = voice.plan(text, style=style, phrase=phrase, most=_WRITTEN_OUT * max_characters)
        warning = voice.front_end.describe_dropped(dropped_symbols(inputs))
        voice.warn_of_changes(inputs)
    _check_work(inputs, seconds_of_frame=voice.audio.hop_length / voice.sampling_rate)
    return inputs, warning


def said_like(
    recording: str, inputs: list[SynthesisInput], voice: Voice, *, max_seconds: float
) -> list[SynthesisInput]:
    """A text's utterances with the lengths, pitch and energy of a ``recording`` of it in base64; networks run.

    Raises:
        ApiError, InputError: it is no recording of speech, or the voice cannot speak with a given prosody.
    """
    try:
        data = base64.b64decode(recording, validate=True)
    except binascii.Error as error:
        raise ApiError(400, "like: expected a sound file in base64") from error
    wave = load_recording(data, sampling_rate=voice.sampling_rate, max_seconds=max_seconds, name="like")
    return imitate(inputs, wave, voice, where="like")


def _speaker(name: str | None, models: ServedModels) -> str | None:
    """The speaker that a request's ``voice`` names; None: the table's, or the usual one."""
    speakers = models.voice.speakers
    name = models.aliases.get(name, name) if name is not None else None
    if name in speakers:
        return name
    if name is None or name == models.voice_name or name in VOICES:
        return None
    raise ApiError(400, f"voice: {shown(name)}, expected one of {', '.join((models.voice_name, *speakers))}")


def _check_length(what: str, length: int, most: int) -> None:
    if length > most:
        raise ApiError(400, f"{what}, this server's limit is {most}", code="string_above_max_length")


def _check_work(items: list[SynthesisInput], *, seconds_of_frame: float) -> None:
    """Refuse what would take all time and memory: an utterance that would be too long, and pauses and given durations
    that would in all.
    """
    where = items[0].phrase.where
    if min((style.rate for item in items for style in item.styles or ()), default=1.0) < _SLOWEST:
        raise InputError(f"{where}: a rate below {_SLOWEST:g} of the usual one")
    seconds, total = 0.0, 0.0  # of the longest, and in all
    for item in items:
        given = 0.0 if item.durations is None else float(item.durations.sum()) * seconds_of_frame
        said = _SYMBOL * (sum(1 / style.rate for style in item.styles) if item.styles else item.length)
        seconds, total = max(seconds, given or said), total + given + item.lead + item.pause
    if seconds > _LONGEST_UTTERANCE:
        what = f"an utterance of about {seconds:.0f} s; this server's limit is {_LONGEST_UTTERANCE:g}"
        raise InputError(f"{where}: {what}; make sentences of it")
    if total > _LONGEST:
        raise InputError(f"{where}: {total:.0f} s of pauses and given durations; this server's limit is {_LONGEST:g}")


class Answer:
    """The sound of a job, of which the first piece is there before the answer begins: what fails before is an error."""

    def __init__(self, job: SpeechJob, record: RequestRecord) -> None:
        """``record`` learns how much is sent."""
        self._n_symbols = sum(item.length for item in job.inputs)
        self._n_samples = 0
        self._job = job
        self._record = record
        self._first: Tensor | None = None

    async def start(self) -> None:
        """Wait for the first piece.

        Raises:
            Exception: what the work failed with.
        """
        self._first = await self._take_piece()

    async def _take_piece(self) -> Tensor | None:
        """The next piece (T_i,) of the sound; None after the last one."""
        while isinstance(result := await self._job.take(), SynthesisResult):
            pass
        return result

    async def pieces(self) -> AsyncIterator[Tensor]:
        """The pieces (T_i,) of the sound; `start` comes first."""
        wave = self._first
        while wave is not None:
            self._n_samples += len(wave)
            self._record.sound = self._n_samples / self._job.voice.sampling_rate
            yield wave
            wave = await self._take_piece()

    async def encoded(self, encoder: Encoder) -> AsyncIterator[bytes]:
        """The bytes of a file."""
        async for wave in self.pieces():
            if data := encoder.encode(wave) if encoder.is_quick else await asyncio.to_thread(encoder.encode, wave):
                yield data
        if data := encoder.finish():
            yield data

    async def events(self, encoder: Encoder) -> AsyncIterator[bytes]:
        """Speech as server-sent events in OpenAI's form; an error after the first event is an event too."""
        try:
            async for data in self.encoded(encoder):
                yield _event({"type": "speech.audio.delta", "audio": _base64(data)})
        except InputError as error:
            yield _event({"type": "error", **error_body(ApiError(500, without_options(str(error))))})
            return
        n_frames = self._n_samples // self._job.voice.audio.hop_length
        usage = {"input_tokens": self._n_symbols, "output_tokens": n_frames}
        yield _event({"type": "speech.audio.done", "usage": usage | {"total_tokens": sum(usage.values())}})


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


async def whole_speech(job: SpeechJob) -> Speech:
    """All of a job's sound, with what is known of it.

    Raises:
        Exception: what the work failed with.
    """
    return job.voice.join([part async for part in spoken_parts(job)])


async def spoken_parts(job: SpeechJob) -> AsyncIterator[SynthesisResult]:
    """A job's utterances, each as soon as its sound is complete.

    Raises:
        Exception: what the work failed with.
    """
    audio = job.voice.audio
    while (made := await job.take()) is not None:
        assert isinstance(made, SynthesisResult)
        pieces: list[Tensor] = []
        n_left = (made.mel.size(1) + sum(silences(made.item, audio))) * audio.hop_length
        while n_left > 0 and isinstance(piece := await job.take(), Tensor):
            pieces.append(piece)
            n_left -= len(piece)
        yield replace(made, wave=torch.cat(pieces))


async def described_events(
    first: SynthesisResult,
    others: AsyncIterator[SynthesisResult],
    job: SpeechJob,
    record: RequestRecord,
    *,
    warning: str,
) -> AsyncIterator[bytes]:
    """Each utterance as `described`, as a server-sent event; an error after the first one is an event too.

    ``record`` learns how much is sent.
    """
    part: SynthesisResult | None = first
    try:
        while part is not None:
            speech = job.voice.join([part])
            record.sound = (record.sound or 0.0) + speech.duration
            body = await asyncio.to_thread(described, speech, warning=warning if part is first else "")
            yield _event({"type": "speech.utterance", "part": part.item.part, "n_parts": part.item.n_parts, **body})
            part = await anext(others, None)
    except InputError as error:
        yield _event({"type": "error", **error_body(ApiError(500, without_options(str(error))))})
        return
    yield _event({"type": "speech.done"})


def described(speech: Speech, *, warning: str) -> dict[str, Any]:
    """Sound, words, prosody and mel of what was spoken, and what was left out, for JSON: what the studio shows."""
    mel = speech.mel
    low, high = float(mel.min()), float(mel.max())
    scaled = ((mel - low) / max(high - low, 1e-6) * 255).round().to(torch.uint8)
    prosody = speech.prosody
    return {
        "audio": _base64(wav_bytes(speech.wave, sampling_rate=speech.sampling_rate)),
        "sampling_rate": speech.sampling_rate,
        "hop_length": speech.audio.hop_length,
        "duration": speech.duration,
        "warning": warning or None,
        "words": [{"text": word.text, "start": word.start, "end": word.end} for word in speech.words],
        "marks": [{"name": name, "time": seconds} for name, seconds in speech.marks],
        "prosody": None if prosody is None else to_plain(prosody),
        "mel": {
            "n_mels": mel.size(0),
            "frames": mel.size(1),
            "data": _base64(scaled.numpy().tobytes()),
            "min": low,
            "max": high,
        },
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
