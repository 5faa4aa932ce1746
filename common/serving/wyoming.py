"""Wyoming, the protocol of Home Assistant: events over TCP that ask for speech and transcripts of the same models."""

import asyncio
import json
import logging
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import numpy as np
import torch
from torch import Tensor
from wyoming import audio, info, tts
from wyoming.asr import Transcribe, Transcript
from wyoming.error import Error
from wyoming.event import Event, Eventable, async_write_event
from wyoming.ping import Ping, Pong

from common.audio.decoding import MOST_CHANNELS, RATES
from common.audio.wav import pcm16, resample
from common.cli import toolkit_version
from common.errors import reason, shown
from common.serving import speaking
from common.serving.errors import ApiError, api_error
from common.serving.gate import HUNG_UP
from common.serving.log import RequestRecord
from common.serving.models import ServedModels
from common.serving.schema import SpeechRequest
from common.text.languages import language_of
from common.text.sentences import split_utterances
from common.text.ssml import Span, has_markup

if TYPE_CHECKING:
    from common.serving.app import Service

logger = logging.getLogger("serve")
_CHUNK = 4096  # samples of an audio-chunk
# What reading an event raises where a client sent something else: a text in place of a number, or no field at all.
_NOT_AN_EVENT = (AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_LINGER = 5.0  # s, for a client to end too
_WHOLE_WORD = re.compile(r"\w\W")


class _RequestError(Exception):
    """A request ended with an error, which its client and the log were told."""


@asynccontextmanager
async def answering(service: "Service", bound: socket.socket) -> AsyncIterator[None]:
    """Within the block clients are answered at the address of ``bound``; then requests in work are finished."""
    connections: dict[asyncio.Task, _Connection] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task, connection = asyncio.current_task(), _Connection(reader, writer, service)
        assert task is not None
        connections[task] = connection
        try:
            with suppress(ConnectionError, TimeoutError):  # the client hung up, or reads nothing
                await connection.run(is_one_too_many=len(connections) > service.limits.max_queue)
        finally:
            del connections[task]

    listener = await asyncio.start_server(serve, sock=bound)
    try:
        yield
    finally:
        listener.close()
        for connection in connections.values():
            connection.stop()
        if connections:
            await asyncio.wait(connections)


class _Connection:
    """A client's events, one after the other; after an error it is closed, as clients wait for the end of sound."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, service: "Service") -> None:
        self._is_busy = self._is_stopping = False
        self._reader, self._writer, self._service, self._limits = reader, writer, service, service.limits
        self._stream: tts.SynthesizeStart | None = None  # whose text comes in pieces
        self._text = ""  # of the stream, that is not spoken yet
        self._pause = 0.0  # s between what the stream has spoken and what comes
        self._n_sent: int | None = None  # samples; None: audio-start isn't sent
        self._recording = bytearray()  # of 16-bit samples
        self._form: tuple[int, int, int] | None = None  # its rate (Hz), width (bytes) and channels

    async def run(self, *, is_one_too_many: bool) -> None:
        """Answer events until one fails, the client ends, or none has come within the deadline."""
        try:
            if is_one_too_many:
                raise ApiError(503, "too many connections, this server's limit; try again later", code="queue_full")
            while not self._is_stopping and (event := await self._read_event()) is not None:
                try:
                    await self._answer(event)
                except _NOT_AN_EVENT as error:
                    what = f"{shown(event.type)[1:-1]}: missing or wrong field ({reason(error)})"
                    raise ApiError(400, what) from error
        except ApiError as error:
            logger.warning("warning: wyoming: %s", error.detail)
            await self._write(Error(error.detail, error.code))
        except _RequestError:
            pass
        finally:
            await self._end()

    def stop(self) -> None:
        """Close the connection, once what is in work is finished."""
        self._is_stopping = True
        if not self._is_busy:
            self._writer.close()

    async def _end(self) -> None:
        """End what is sent, and drop what the client still sends: to close before may lose it the error that it got."""
        if not self._is_stopping:
            with suppress(OSError), anyio.move_on_after(_LINGER):
                self._writer.write_eof()
                while await self._reader.read(_CHUNK):
                    pass
        self._writer.close()

    async def _write(self, event: Eventable) -> None:
        await async_write_event(event.event(), self._writer)

    async def _read_event(self) -> Event | None:
        """The next event; None where the client ended, or sent nothing for too long."""
        with anyio.move_on_after(self._limits.deadline):
            try:
                if not (line := await self._reader.readline()):
                    return None
                head = json.loads(line)
                sizes = [head.get(name) or 0 for name in ("data_length", "payload_length")]
                if max(sizes) > self._limits.max_body:
                    raise ApiError(413, f"an event of more than {self._limits.max_body} bytes, this server's limit")
                data, payload = [await self._reader.readexactly(size) for size in sizes]
                return Event(head["type"], (head.get("data") or {}) | json.loads(data or b"{}"), payload)
            except asyncio.IncompleteReadError:
                return None
            except _NOT_AN_EVENT as error:
                raise ApiError(400, "not an event of the Wyoming protocol") from error
        return None

    @asynccontextmanager
    async def _request(self, what: str) -> AsyncIterator[RequestRecord]:
        """Within the block a request has its place and time; it is logged, and an error goes to the client."""
        record, gate = RequestRecord(f"wyoming {what}", f"wyoming/{what}"), self._service.gate
        self._is_busy = True
        try:
            with gate.place(), gate.deadline():
                yield record
            record.status = 200
        except ConnectionError:
            record.status = HUNG_UP
            raise
        except Exception as error:
            failure = api_error(error)
            record.status, record.error = failure.status_code, failure.detail
            await self._write(Error(failure.detail, failure.code))
            raise _RequestError from error
        finally:
            self._is_busy = False
            gate.count(record)

    async def _answer(self, event: Event) -> None:
        """Answer an event; those of unknown kinds are ignored."""
        kind, stream = event.type, self._stream
        if info.Describe.is_type(kind):
            await self._write(describe(self._service.models))
        elif Ping.is_type(kind):
            await self._write(Pong(Ping.from_event(event).text))
        elif tts.SynthesizeStart.is_type(kind):
            self._stream = tts.SynthesizeStart.from_event(event)
            self._begin_sound()
        elif tts.SynthesizeChunk.is_type(kind) and stream is not None:
            self._text += tts.SynthesizeChunk.from_event(event).text
            await self._speak_sentences(stream)
        elif tts.SynthesizeStop.is_type(kind) and stream is not None:
            if self._text.strip():
                await self._speak(self._text, stream)
            self._stream = None
            await self._end_sound()
            await self._write(tts.SynthesizeStopped())
        elif tts.Synthesize.is_type(kind) and stream is None:  # in a stream it repeats the text, for old servers
            wanted = tts.Synthesize.from_event(event)
            self._begin_sound()
            await self._speak(wanted.text, wanted)
            await self._end_sound()
        elif Transcribe.is_type(kind):
            self._begin_recording()
        elif audio.AudioStart.is_type(kind):
            self._begin_recording()
            self._record(audio.AudioStart.from_event(event))
        elif audio.AudioChunk.is_type(kind):
            self._record(audio.AudioChunk.from_event(event))
        elif audio.AudioStop.is_type(kind):
            await self._transcribe()
            self._begin_recording()

    async def _speak_sentences(self, stream: tts.SynthesizeStart) -> None:
        """Speak the sentences of the stream that are complete: after which another one has begun."""
        if len(self._text) > self._limits.max_characters:
            await self._speak(self._text, stream)  # which says so
        if stream.text_format == "ssml" or has_markup(self._text):  # which is whole at its end alone
            return
        parts = split_utterances([Span(self._text)])
        last = "".join(span.text for span in parts[-1].spans) if len(parts) > 1 else ""
        end = self._text.rfind(last)
        if last and end >= 0 and _WHOLE_WORD.search(self._text[end:]):
            text, self._text = self._text[:end], self._text[end:]
            await self._speak(text, stream)
            self._pause = parts[-2].pause

    async def _speak(self, text: str, wanted: tts.Synthesize | tts.SynthesizeStart) -> None:
        """Send the sound of a text."""
        async with self._request("synthesize") as record:
            voice = wanted.voice or tts.SynthesizeVoice()
            fields: dict[str, Any] = {"input": text, "voice": voice.speaker or voice.name}
            request = SpeechRequest(**fields, ssml=True if wanted.text_format == "ssml" else None)
            job = self._service.start_speech(await self._service.plan(request, record), record)
            pieces = await speaking.begun(speaking.pieces_of(job))
            rate, hop = job.voice.sampling_rate, job.voice.audio.hop_length
            await self._send(torch.zeros(round(self._pause * rate / hop) * hop), rate)  # as `silences` has it
            async for wave in pieces:
                record.begin_answer()
                await self._send(wave, rate)

    async def _send(self, wave: Tensor, rate: int) -> None:
        """Send samples (T,) in chunks, and what begins the sound before the first one."""
        form: dict[str, Any] = {"rate": rate, "width": 2, "channels": 1}
        if self._n_sent is None:
            self._n_sent = 0
            await self._write(audio.AudioStart(**form))
        for samples in wave.split(_CHUNK) if len(wave) else ():
            at = self._n_sent * 1000 // rate  # ms
            await self._write(audio.AudioChunk(**form, audio=pcm16(samples), timestamp=at))
            self._n_sent += len(samples)

    def _begin_sound(self) -> None:
        self._text, self._pause, self._n_sent = "", 0.0, None

    async def _end_sound(self) -> None:
        if self._n_sent is not None:
            await self._write(audio.AudioStop(timestamp=None))

    def _begin_recording(self) -> None:
        _ = self._service.models.transcriber  # raises where there is none
        self._recording, self._form = bytearray(), None

    def _record(self, part: audio.AudioStart | audio.AudioChunk) -> None:
        """Take the form of a recording, which all of its chunks have, or its next samples."""
        _ = self._service.models.transcriber
        kind, form, data = part.event().type, (part.rate, part.width, part.channels), getattr(part, "audio", b"")
        if not all(type(number) is int for number in form) or part.width != 2:
            raise ApiError(400, f"{kind}: expected samples of 16 bits, their rate and number of channels")
        if not (RATES[0] <= part.rate <= RATES[1] and 1 <= part.channels <= MOST_CHANNELS):
            wanted = f"expected {RATES[0]} to {RATES[1]} Hz and 1 to {MOST_CHANNELS} channels"
            raise ApiError(400, f"{kind}: {shown(part.rate)} Hz and {shown(part.channels)} channels, {wanted}")
        if form != (self._form or form) or len(data) % (2 * part.channels):
            raise ApiError(400, f"{kind}: expected whole samples, all of one rate and number of channels")
        self._form = form
        self._recording += data
        seconds, most = self._limits.max_audio_seconds, self._limits.max_body
        if len(self._recording) > min(seconds * part.rate * 2 * part.channels, most):
            raise ApiError(400, f"{kind}: more than {seconds:g} s of sound, or {most} bytes, this server's limit")

    async def _transcribe(self) -> None:
        async with self._request("transcribe") as record:
            recognizer = self._service.models.transcriber
            if not self._recording or self._form is None:
                raise ApiError(400, "audio-stop: there was no sound before it")
            rate, _, channels = self._form
            samples = np.frombuffer(self._recording, "<i2").reshape(-1, channels).mean(axis=1, dtype=np.float32) / 32768
            ratio = recognizer.sampling_rate / rate
            wave = await asyncio.to_thread(resample, torch.from_numpy(samples), ratio=ratio)
            found = await self._service.start_transcript(wave, record).take()
            assert found is not None
            record.begin_answer()
            await self._write(Transcript(found.text))


def describe(models: ServedModels) -> info.Info:
    """The voice with its language and speakers, and the recognizer, as clients list them."""
    config = models.voice.front_end.config
    tag = config.g2p_language if config.g2p is not None else language_of(config) or "en"
    language, _, region = tag.partition("-")
    region = region.partition("-")[0]
    toolkit: dict[str, Any] = {
        "attribution": info.Attribution("speech-toolkit", ""),
        "installed": True,
        "version": toolkit_version(),
    }
    # A recognizer does not say what language it was trained on: it is taken to be the voice's.
    own = toolkit | {"languages": [f"{language}-{region.upper()}" if len(region) == 2 else language]}
    speakers = [info.TtsVoiceSpeaker(name) for name in models.voice.speakers]
    voice = info.TtsVoice(models.voice_name, description=models.voice_name, speakers=speakers, **own)
    tts = info.TtsProgram(
        "speech-toolkit", description="Speech", voices=[voice], supports_synthesize_streaming=True, **toolkit
    )
    if models.recognizer is None:
        return info.Info(tts=[tts])
    model = info.AsrModel(models.recognizer_name, description=models.recognizer_name, **own)
    return info.Info(
        tts=[tts], asr=[info.AsrProgram("speech-toolkit", description="Transcripts", models=[model], **toolkit)]
    )
