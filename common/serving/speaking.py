"""Requests to speak: plan them for the voice, and turn the sound into the bytes of an answer."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from common.audio.wav import encode_sound
from common.config import to_plain
from common.errors import InputError, shown
from common.serving.errors import ApiError, api_error
from common.serving.models import VOICES, ServedModels
from common.serving.schema import SpeechRequest
from common.serving.sound import Encoder
from common.serving.worker import SpeechJob
from common.synthesis.speech import Speech, parse_prosody
from common.synthesis.utterances import Phrase, SynthesisInput, SynthesisResult, dropped_symbols
from common.synthesis.voice import Voice
from common.text.ssml import has_markup

_SLOWEST = 0.1  # lowest product of all rate factors
_LONGEST_UTTERANCE = 120.0  # s
_LONGEST = 900.0  # s
_SYMBOL = 0.06  # s, approximate length of a symbol at the usual rate
_WRITTEN_OUT = 4  # symbols allowed per allowed character, since numbers are written out
Item = TypeVar("Item")


class Plan(NamedTuple):
    """A request, checked and ready to synthesize."""

    voice: Voice
    inputs: list[SynthesisInput]
    warning: str  # about dropped symbols; "" if there are none


def plan(request: SpeechRequest, models: ServedModels, *, max_characters: int) -> Plan:
    """Plan a request without running a network; raises ApiError or InputError if it can't be spoken."""
    voice, synthesizer = models.voice, models.voice.synthesizer
    if request.seed is not None:
        controls = replace(synthesizer.controls, seed=request.seed)
        voice = replace(voice, synthesizer=replace(synthesizer, controls=controls))
    for name in ("speed", "pitch"):
        if getattr(request, name) not in (None, 1.0) and not voice.shapes_prosody:
            raise ApiError(400, f"{name}: {models.voice_name} cannot change it; leave it out")
    text, where = request.input or "", "input" if request.prosody is None else "prosody"
    how: dict[str, Any] = {"pace": request.speed or 1.0, "pitch": request.pitch or 1.0}
    how |= {"volume": 1.0 if request.volume is None else request.volume, "speaker": _speaker(request.voice, models)}
    how["phrase"] = Phrase(where, PurePosixPath("speech.wav"), text)
    if request.prosody is not None:
        table = parse_prosody(request.prosody, where=where)
        _check_length(where, sum(1 for one in table.utterances for _ in one.symbols), "symbols", max_characters)
        inputs, warning = voice.plan(table, **how), ""
    else:
        _check_length(where, len(text), "characters", max_characters)
        if request.ssml is not None and request.ssml != has_markup(text):
            wrong = "holds no SSML" if request.ssml else "holds SSML; write &lt; for a literal <"
            raise ApiError(400, f"ssml: input {wrong} (ssml is {str(request.ssml).lower()})")
        inputs = voice.plan(text, **how)
        _check_length(where, sum(map(len, (one.symbols for one in inputs))), "symbols", _WRITTEN_OUT * max_characters)
        warning = voice.front_end.describe_dropped(dropped_symbols(inputs))
    _check_work(inputs, seconds_of_frame=voice.audio.hop_length / voice.sampling_rate)
    return Plan(voice, inputs, warning)


def _speaker(name: str | None, models: ServedModels) -> str | None:
    """Return the speaker that a request's ``voice`` names; None: the table's or the default."""
    speakers = models.voice.speakers
    name = models.aliases.get(name, name) if name is not None else None
    if name in speakers:
        return name
    if name is None or name == models.voice_name or name in VOICES:
        return None
    raise ApiError(400, f"voice: {shown(name)}, expected one of {', '.join((models.voice_name, *speakers))}")


def _check_length(where: str, length: int, unit: str, most: int) -> None:
    if length > most:
        raise ApiError(400, f"{where}: {length} {unit}, this server's limit is {most}", code="string_above_max_length")


def _check_work(items: list[SynthesisInput], *, seconds_of_frame: float) -> None:
    """Raise InputError for utterances, pauses and durations that would take too much time and memory."""
    where = items[0].phrase.where
    if min((style.rate for item in items for style in item.styles or ()), default=1.0) < _SLOWEST:
        raise InputError(f"{where}: the rate is below {_SLOWEST:g} of the usual one")
    seconds, total = 0.0, 0.0  # of the longest utterance, and in total
    for item in items:
        given = 0.0 if item.durations is None else float(item.durations.sum()) * seconds_of_frame
        said = _SYMBOL * (sum(1 / style.rate for style in item.styles) if item.styles else item.length)
        seconds, total = max(seconds, given or said), total + given + item.lead + item.pause
    if seconds > _LONGEST_UTTERANCE:
        what = f"an utterance of about {seconds:.0f} s; this server's limit is {_LONGEST_UTTERANCE:g}"
        raise InputError(f"{where}: {what}; split it into sentences")
    if total > _LONGEST:
        raise InputError(f"{where}: {total:.0f} s of pauses and given durations; this server's limit is {_LONGEST:g}")


async def begun(items: AsyncIterator[Item]) -> AsyncIterator[Item]:
    """Wait for the first item, so that an early failure becomes an error, not a truncated answer."""
    first = await anext(items)

    async def all_items() -> AsyncIterator[Item]:
        yield first
        async for one in items:
            yield one

    return all_items()


async def pieces_of(job: SpeechJob) -> AsyncIterator[Tensor]:
    """Yield the pieces (T_i,) of a job's sound."""
    while (made := await job.take()) is not None:
        if isinstance(made, Tensor):
            yield made


async def utterances_of(job: SpeechJob) -> AsyncIterator[SynthesisResult]:
    """Yield a job's utterances, each as soon as its sound is complete."""
    pieces: list[Tensor] = []
    while (made := await job.take()) is not None:
        if isinstance(made, Tensor):
            pieces.append(made)
            continue
        yield replace(made, wave=torch.cat(pieces))
        pieces = []


async def whole_speech(job: SpeechJob) -> Speech:
    """Return the complete speech of a job."""
    return job.voice.join([part async for part in utterances_of(job)])


async def encoded(job: SpeechJob, encoder: Encoder) -> AsyncIterator[bytes]:
    """Yield a job's sound as the bytes of a file."""
    async for wave in pieces_of(job):
        if data := encoder.encode(wave) if encoder.is_quick else await asyncio.to_thread(encoder.encode, wave):
            yield data
    if data := encoder.encode(torch.zeros(0), last=True):
        yield data


async def audio_events(job: SpeechJob, encoder: Encoder) -> AsyncIterator[dict[str, Any]]:
    """Yield a job's sound as OpenAI's events."""
    async for data in encoded(job, encoder):
        yield {"type": "speech.audio.delta", "audio": _base64(data)}
    n_frames = round((job.record.sound or 0.0) * job.voice.sampling_rate / job.voice.audio.hop_length)
    usage = {"input_tokens": job.n_symbols, "output_tokens": n_frames, "total_tokens": job.n_symbols + n_frames}
    yield {"type": "speech.audio.done", "usage": usage}


async def described_events(job: SpeechJob, *, warning: str) -> AsyncIterator[dict[str, Any]]:
    """Yield each utterance of a job as an event with the fields of `described`."""
    async for part in utterances_of(job):
        body = await asyncio.to_thread(described, job.voice.join([part]), warning=warning)
        yield {"type": "speech.utterance", "part": part.item.part, "n_parts": part.item.n_parts, **body}
        warning = ""
    yield {"type": "speech.done"}


async def server_sent(events: AsyncIterator[dict[str, Any]]) -> AsyncIterator[str]:
    """Format events for sending; an error becomes an event, too."""
    try:
        async for event in events:
            yield f"data: {json.dumps(event)}\n\n"
    except Exception as error:
        yield f"data: {json.dumps({'type': 'error', **api_error(error).body})}\n\n"


def described(speech: Speech, *, warning: str) -> dict[str, Any]:
    """Return speech as JSON for the studio: sound, words, prosody and mel, and a warning about dropped symbols."""
    mel = speech.mel
    low, high = float(mel.min()), float(mel.max())
    scaled = ((mel - low) / max(high - low, 1e-6) * 255).round().to(torch.uint8)
    prosody = speech.prosody
    return {
        "audio": _base64(encode_sound(speech.wave, PurePosixPath("speech.wav"), sampling_rate=speech.sampling_rate)),
        "sampling_rate": speech.sampling_rate,
        "hop_length": speech.audio.hop_length,
        "duration": speech.duration,
        "warning": warning or None,
        "words": [{"text": word.text, "start": word.start, "end": word.end} for word in speech.words],
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
