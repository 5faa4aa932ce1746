"""Wyoming, Home Assistant's protocol: events over TCP that request speech and transcripts from the same models."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import numpy as np
import torch
from wyoming import audio, info, tts
from wyoming.asr import Transcribe, Transcript
from wyoming.error import Error
from wyoming.event import Event, Eventable, async_write_event
from wyoming.ping import Ping, Pong

from common.audio.decoding import MOST_CHANNELS, RATES
from common.audio.wav import resample, to_int16
from common.cli import toolkit_version
from common.errors import reason, shown
from common.serving import speaking
from common.serving.errors import ApiError, api_error
from common.serving.gate import HUNG_UP
from common.serving.log import RequestRecord
from common.serving.models import ServedModels
from common.serving.schema import SpeechRequest
from common.text.languages import language_of

if TYPE_CHECKING:
    from common.serving.app import Service

logger = logging.getLogger("serve")
_CHUNK = 4096  # samples of an audio-chunk
# Raised by reading a malformed event, with text instead of a number, for example, or without a field.
_NOT_AN_EVENT = (AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_LINGER = 5.0  # s, for the client to close its side


class _RequestError(Exception):
    """A request failed; the client and the log already have the error."""


@asynccontextmanager
async def answering(service: "Service", bound: socket.socket) -> AsyncIterator[None]:
    """Answer the clients of the socket ``bound`` within the block; then finish the requests in progress."""
    connections: dict[asyncio.Task, _Connection] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task, connection = asyncio.current_task(), _Connection(reader, writer, service)
        assert task is not None
        connections[task] = connection
        try:
            with suppress(ConnectionError, TimeoutError):  # the client hung up or doesn't read
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
    """Answers a client's events in order; closes after an error, since the client would wait for sound."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, service: "Service") -> None:
        self._is_busy = self._is_stopping = False
        self._reader, self._writer, self._service, self._limits = reader, writer, service, service.limits
        self._recording = bytearray()  # of 16-bit samples
        self._form: tuple[int, int, int] | None = None  # its rate (Hz), width (bytes) and channels

    async def run(self, *, is_one_too_many: bool) -> None:
        """Answer events until one fails, the client disconnects, or none arrives within the deadline."""
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
        """Close the connection once its request in progress is finished."""
        self._is_stopping = True
        if not self._is_busy:
            self._writer.close()

    async def _end(self) -> None:
        """Stop sending, and discard what the client still sends; closing earlier could lose the error on its way."""
        if not self._is_stopping:
            with suppress(OSError), anyio.move_on_after(_LINGER):
                self._writer.write_eof()
                while await self._reader.read(_CHUNK):
                    pass
        self._writer.close()

    async def _write(self, event: Eventable) -> None:
        await async_write_event(event.event(), self._writer)

    async def _read_event(self) -> Event | None:
        """Read the next event; None if the client disconnected or sent nothing for too long."""
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
        """Hold a place, and limit the time, within the block; log the request, and send an error to the client."""
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
        """Answer an event; unknown kinds are ignored."""
        kind = event.type
        if info.Describe.is_type(kind):
            await self._write(describe(self._service.models))
        elif Ping.is_type(kind):
            await self._write(Pong(Ping.from_event(event).text))
        elif tts.Synthesize.is_type(kind):
            await self._speak(tts.Synthesize.from_event(event))
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

    async def _speak(self, wanted: tts.Synthesize) -> None:
        """Send the sound of a text in chunks."""
        async with self._request("synthesize") as record:
            voice = wanted.voice or tts.SynthesizeVoice()
            fields: dict[str, Any] = {"input": wanted.text, "voice": voice.speaker or voice.name}
            request = SpeechRequest(**fields, ssml=True if wanted.text_format == "ssml" else None)
            job = self._service.start_speech(await self._service.plan(request, record), record)
            pieces = await speaking.begun(speaking.pieces_of(job))
            form: dict[str, Any] = {"rate": job.voice.sampling_rate, "width": 2, "channels": 1}
            await self._write(audio.AudioStart(**form))
            n_sent = 0  # samples
            async for wave in pieces:
                record.begin_answer()
                for samples in wave.split(_CHUNK):
                    at = n_sent * 1000 // job.voice.sampling_rate  # ms
                    await self._write(audio.AudioChunk(**form, audio=to_int16(samples.numpy()).tobytes(), timestamp=at))
                    n_sent += len(samples)
            await self._write(audio.AudioStop(timestamp=None))

    def _begin_recording(self) -> None:
        _ = self._service.models.transcriber  # raises if there is none
        self._recording, self._form = bytearray(), None

    def _record(self, part: audio.AudioStart | audio.AudioChunk) -> None:
        """Take a recording's format, which all of its chunks must have, or its next samples."""
        _ = self._service.models.transcriber
        kind, form, data = part.event().type, (part.rate, part.width, part.channels), getattr(part, "audio", b"")
        is_sound = all(type(number) is int for number in form) and part.width == 2
        is_usual = is_sound and RATES[0] <= part.rate <= RATES[1] and 1 <= part.channels <= MOST_CHANNELS
        if not is_usual or form != (self._form or form) or len(data) % (2 * part.channels):
            got = f"{shown(part.rate)} Hz, {shown(part.channels)} channels and {shown(part.width)} bytes per sample"
            wanted = f"{RATES[0]} to {RATES[1]} Hz, 1 to {MOST_CHANNELS} channels and 2 bytes, the same in every chunk"
            raise ApiError(400, f"{kind}: {got}, expected {wanted}")
        self._form = form
        self._recording += data
        seconds, most = self._limits.max_audio_seconds, self._limits.max_body
        if len(self._recording) > min(seconds * part.rate * 2 * part.channels, most):
            raise ApiError(400, f"{kind}: more than {seconds:g} s of sound, or {most} bytes, this server's limit")

    async def _transcribe(self) -> None:
        async with self._request("transcribe") as record:
            recognizer = self._service.models.transcriber
            if not self._recording or self._form is None:
                raise ApiError(400, "audio-stop: no sound came before it")
            rate, _, channels = self._form
            samples = np.frombuffer(self._recording, "<i2").reshape(-1, channels).mean(axis=1, dtype=np.float32) / 32768
            ratio = recognizer.sampling_rate / rate
            wave = await asyncio.to_thread(resample, torch.from_numpy(samples), ratio=ratio)
            found = await self._service.start_transcript(wave, record).take()
            assert found is not None
            record.begin_answer()
            await self._write(Transcript(found.text))


def describe(models: ServedModels) -> info.Info:
    """Describe the voice, with its language and speakers, and the recognizer, for clients to list."""
    config = models.voice.front_end.config
    tag = config.g2p_language if config.g2p is not None else language_of(config) or "en"
    language, _, region = tag.partition("-")
    region = region.partition("-")[0]
    toolkit: dict[str, Any] = {
        "attribution": info.Attribution("speech-toolkit", ""),
        "installed": True,
        "version": toolkit_version(),
    }
    # A recognizer doesn't know the language that it was trained on; assume the voice's.
    own = toolkit | {"languages": [f"{language}-{region.upper()}" if len(region) == 2 else language]}
    speakers = [info.TtsVoiceSpeaker(name) for name in models.voice.speakers]
    voice = info.TtsVoice(models.voice_name, description=models.voice_name, speakers=speakers, **own)
    tts = info.TtsProgram("speech-toolkit", description="Speech", voices=[voice], **toolkit)
    if models.recognizer is None:
        return info.Info(tts=[tts])
    model = info.AsrModel(models.recognizer_name, description=models.recognizer_name, **own)
    return info.Info(
        tts=[tts], asr=[info.AsrProgram("speech-toolkit", description="Transcripts", models=[model], **toolkit)]
    )
