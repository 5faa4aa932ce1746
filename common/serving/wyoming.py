"""Wyoming, the protocol of Home Assistant: events over TCP that ask for speech and transcripts of the same models."""

import asyncio
import logging
import re
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import anyio
import numpy as np
import torch
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from torch import Tensor
from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.error import Error
from wyoming.event import Event, async_read_event
from wyoming.info import AsrModel, AsrProgram, Attribution, Describe, Info, TtsProgram, TtsVoice, TtsVoiceSpeaker
from wyoming.ping import Ping, Pong
from wyoming.server import AsyncEventHandler
from wyoming.tts import Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeStopped, SynthesizeVoice

from common.audio.wav import pcm16, resample
from common.cli import toolkit_version
from common.errors import InputError, reason, shown
from common.serving.errors import ApiError, describe_invalid, without_options
from common.serving.gate import HUNG_UP
from common.serving.log import RequestRecord
from common.serving.models import ServedModels
from common.serving.schema import SpeechRequest
from common.serving.sound import check_form
from common.text.languages import language_of
from common.text.sentences import split_utterances
from common.text.ssml import Span, has_markup

if TYPE_CHECKING:
    from common.serving.app import Service

logger = logging.getLogger("serve")
_CHUNK = 4096  # samples of an audio-chunk
# What reading an event raises where a client sent something else: a text in place of a number, or no field at all.
_NOT_AN_EVENT = (AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
_WRONG = "not an event of the Wyoming protocol"
_LINGER = 5.0  # s, for a client to end too
_WHOLE_WORD = re.compile(r"\w\W")
Work = Callable[[RequestRecord, ExitStack], Awaitable[None]]


class WyomingServer:
    """Answers Wyoming's clients from `start` to `stop`."""

    def __init__(self, service: "Service", bound: socket.socket) -> None:
        """``bound`` has the address to listen on."""
        self.service = service
        self.is_stopping = False
        self._bound = bound
        self._listener: asyncio.Server | None = None
        self.connections: dict[asyncio.Task, _Connection] = {}

    async def start(self) -> None:
        """Accept connections."""
        self._listener = await asyncio.start_server(self._serve, sock=self._bound)

    async def stop(self) -> None:
        """Accept no more, finish the requests in work, and close all connections."""
        self.is_stopping = True
        assert self._listener is not None
        self._listener.close()
        for connection in self.connections.values():
            if not connection.is_busy:
                connection.writer.close()
        if self.connections:
            await asyncio.wait(self.connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task, connection = asyncio.current_task(), _Connection(reader, writer, self)
        assert task is not None
        self.connections[task] = connection
        try:
            with suppress(ConnectionError, TimeoutError):  # the client hung up, or reads nothing
                await connection.run()
        except Exception:  # the server must survive any error
            logger.exception("error: wyoming")
        finally:
            del self.connections[task]


class _BoundedReader:
    """Reads no part of an event of more than ``most`` bytes."""

    def __init__(self, reader: asyncio.StreamReader, *, most: int) -> None:
        self._reader = reader
        self._most = most

    async def readline(self) -> bytes:
        return await self._reader.readline()  # which has a limit of its own

    async def readexactly(self, n_bytes: int) -> bytes:
        if n_bytes > self._most:
            raise ApiError(413, f"an event of more than {self._most} bytes, this server's limit")
        return await self._reader.readexactly(n_bytes)


class _Connection(AsyncEventHandler):
    """A client's events, one after the other; after an error it is closed, as clients wait for the end of sound."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: WyomingServer) -> None:
        super().__init__(_BoundedReader(reader, most=server.service.limits.max_body), writer)  # type: ignore[arg-type]
        self._received = reader
        self.is_busy = False
        self._server, self._service = server, server.service
        self._stream: SynthesizeStart | None = None  # whose text comes in pieces
        self._text = ""  # of the stream, that is not spoken yet
        self._pause = 0.0  # s between what the stream has spoken and what comes
        self._has_begun = False  # whether audio-start is sent
        self._n_sent = 0  # samples since then
        self._recording = bytearray()  # of 16-bit samples
        self._form: tuple[int, int, int] | None = None  # its rate (Hz), width (bytes) and channels

    async def run(self) -> None:
        """Answer events until one fails, the client ends, or none has come within the deadline."""
        try:
            if len(self._server.connections) > self._service.limits.max_queue:
                raise ApiError(503, "too many connections, this server's limit; try again later", code="queue_full")
            while (event := await self._read_event()) is not None:
                try:
                    if not await self.handle_event(event):
                        break
                except _NOT_AN_EVENT as error:
                    raise ApiError(
                        400, f"{shown(event.type)[1:-1]}: missing or wrong field ({reason(error)})"
                    ) from error
        except ApiError as error:
            logger.warning("warning: wyoming: %s", error.detail)
            await self.write_event(Error(error.detail, error.code).event())
        finally:
            await self.disconnect()
            self.writer.close()

    async def _read_event(self) -> Event | None:
        """The next event; None where the client ended, or sent nothing for too long."""
        with anyio.move_on_after(self._service.limits.deadline):
            try:
                event = await async_read_event(self.reader)
            except asyncio.IncompleteReadError:
                return None
            except _NOT_AN_EVENT as error:
                raise ApiError(400, _WRONG) from error
            if event is None and not self._received.at_eof():  # it was no JSON
                raise ApiError(400, _WRONG)
            return event
        return None

    async def handle_event(self, event: Event) -> bool:
        """Answer an event; returns whether the connection goes on. Events that are not known are ignored."""
        kind, goes_on = event.type, True
        if Describe.is_type(kind):
            await self.write_event(describe(self._service.models).event())
        elif Ping.is_type(kind):
            await self.write_event(Pong(Ping.from_event(event).text).event())
        elif SynthesizeStart.is_type(kind):
            self._stream = SynthesizeStart.from_event(event)
            self._begin_sound()
        elif SynthesizeChunk.is_type(kind) and self._stream is not None:
            self._text += SynthesizeChunk.from_event(event).text
            goes_on = await self._speak_sentences(self._stream)
        elif SynthesizeStop.is_type(kind) and self._stream is not None:
            goes_on = not self._text.strip() or await self._speak(self._text, self._stream)
            self._stream = None
            if goes_on:
                await self._end_sound()
                await self.write_event(SynthesizeStopped().event())
        elif Synthesize.is_type(kind) and self._stream is None:  # in a stream it repeats the text, for old servers
            wanted = Synthesize.from_event(event)
            self._begin_sound()
            if goes_on := await self._speak(wanted.text, wanted):
                await self._end_sound()
        elif Transcribe.is_type(kind) or AudioStart.is_type(kind):
            self._recording, self._form = bytearray(), None
            start = AudioStart.from_event(event) if AudioStart.is_type(kind) else None
            goes_on = await self._do(kind, self._record(start), quiet=True)
        elif AudioChunk.is_type(kind):
            goes_on = await self._do(kind, self._record(AudioChunk.from_event(event)), quiet=True)
        elif AudioStop.is_type(kind):
            goes_on = await self._do("transcribe", self._transcribe)
            self._recording, self._form = bytearray(), None
        return goes_on and not self._server.is_stopping

    async def disconnect(self) -> None:
        """End what is sent, and drop what the client still sends: to close before may lose it the error that it got."""
        if not self._server.is_stopping:
            with suppress(OSError), anyio.move_on_after(_LINGER):
                self.writer.write_eof()
                while await self._received.read(_CHUNK):
                    pass

    async def _do(self, what: str, work: Work, *, quiet: bool = False) -> bool:
        """Do the work of a request within the limits, and log it; an error goes to the client. Returns whether all went
        well. A ``quiet`` request is logged only where it fails.
        """
        record, gate = RequestRecord(f"wyoming {what}", f"wyoming/{what}"), self._service.gate
        failure: ApiError | None = None
        self.is_busy = True
        try:
            with gate.place(), ExitStack() as ending, anyio.fail_after(self._service.limits.deadline):
                await work(record, ending)
            record.status = 200
        except ConnectionError:
            record.status = HUNG_UP
        except TimeoutError:
            failure = ApiError(504, f"not done within {self._service.limits.deadline:g} s, this server's limit")
        except ValidationError as error:
            faults = [{**fault, "loc": ("body", *fault["loc"])} for fault in error.errors()]
            failure = describe_invalid(RequestValidationError(faults))
        except ApiError as error:
            failure = error
        except InputError as error:
            failure = ApiError(400, without_options(str(error)))
        except Exception:  # the server must survive any error
            logger.exception("error: %s", record.what)
            failure = ApiError(500, "an internal error, which the server's log has")
        self.is_busy = False
        if failure is not None:
            record.status, record.error = failure.status_code, failure.detail
        if not quiet or failure is not None:
            gate.count(record)
        if failure is not None:
            await self.write_event(Error(failure.detail, failure.code).event())
        return record.status == 200

    async def _speak_sentences(self, stream: SynthesizeStart) -> bool:
        """Speak the sentences of the stream that are complete: after which another one has begun."""
        if len(self._text) > self._service.limits.max_characters:
            return await self._speak(self._text, stream)  # which says so
        if stream.text_format == "ssml" or has_markup(self._text):  # which is whole at its end alone
            return True
        parts = split_utterances([Span(self._text)])
        last = "".join(span.text for span in parts[-1].spans) if len(parts) > 1 else ""
        end = self._text.rfind(last)
        if not last or end < 0 or not _WHOLE_WORD.search(self._text[end:]):
            return True
        text, self._text = self._text[:end], self._text[end:]
        goes_on = await self._speak(text, stream)
        self._pause = parts[-2].pause
        return goes_on

    async def _speak(self, text: str, wanted: Synthesize | SynthesizeStart) -> bool:
        """Send the sound of a text; returns whether all went well."""

        async def work(record: RequestRecord, ending: ExitStack) -> None:
            voice = wanted.voice or SynthesizeVoice()
            fields: dict[str, Any] = {"input": text, "voice": voice.speaker or voice.name}
            request = SpeechRequest(**fields, ssml=True if wanted.text_format == "ssml" else None)
            job, answer, _ = await self._service.begin_speech(request, record, ending)
            await answer.start()
            rate, hop = job.voice.sampling_rate, job.voice.audio.hop_length
            await self._send(torch.zeros(round(self._pause * rate / hop) * hop), rate)  # as `silences` has it
            async for wave in answer.pieces():
                record.begin_answer()
                await self._send(wave, rate)

        return await self._do("synthesize", work)

    async def _send(self, wave: Tensor, rate: int) -> None:
        """Send samples (T,) in chunks, and what begins the sound before the first one."""
        form: dict[str, Any] = {"rate": rate, "width": 2, "channels": 1}
        if not self._has_begun:
            self._has_begun = True
            await self.write_event(AudioStart(**form).event())
        for samples in wave.split(_CHUNK):
            if len(samples):
                at = self._n_sent * 1000 // rate  # ms
                await self.write_event(AudioChunk(**form, audio=pcm16(samples), timestamp=at).event())
                self._n_sent += len(samples)

    def _begin_sound(self) -> None:
        self._text, self._pause, self._has_begun, self._n_sent = "", 0.0, False, 0

    async def _end_sound(self) -> None:
        if self._has_begun:
            await self.write_event(AudioStop(timestamp=None).event())

    def _record(self, part: AudioStart | AudioChunk | None) -> Work:
        """Take the form of a recording, which all of its chunks have, or its next samples; None: it is to come."""

        async def work(record: RequestRecord, ending: ExitStack) -> None:
            _ = self._service.models.transcriber  # raises where there is none
            if part is None:
                return
            kind, form, data = part.event().type, (part.rate, part.width, part.channels), getattr(part, "audio", b"")
            if not all(type(number) is int for number in form) or part.width != 2:
                raise ApiError(400, f"{kind}: expected samples of 16 bits, their rate and number of channels")
            check_form(kind, part.rate, part.channels)
            if form != (self._form or form) or len(data) % (2 * part.channels):
                raise ApiError(400, f"{kind}: expected whole samples, all of one rate and number of channels")
            self._form, limits = form, self._service.limits
            self._recording += data
            if len(self._recording) > min(limits.max_audio_seconds * part.rate * 2 * part.channels, limits.max_body):
                most = f"{limits.max_audio_seconds:g} s of sound, or {limits.max_body} bytes"
                raise ApiError(400, f"{kind}: more than {most}, this server's limit")

        return work

    async def _transcribe(self, record: RequestRecord, ending: ExitStack) -> None:
        recognizer = self._service.models.transcriber
        if not self._recording or self._form is None:
            raise ApiError(400, "audio-stop: there was no sound before it")
        rate, _, channels = self._form
        samples = np.frombuffer(self._recording, "<i2").reshape(-1, channels).mean(axis=1, dtype=np.float32) / 32768
        ratio = recognizer.sampling_rate / rate
        wave = await asyncio.to_thread(resample, torch.from_numpy(samples), ratio=ratio)
        found = await self._service.begin_transcript(wave, record, ending).take()
        assert found is not None
        record.begin_answer()
        await self.write_event(Transcript(found.text).event())


def describe(models: ServedModels) -> Info:
    """The voice with its language and speakers, and the recognizer, as clients list them."""
    config = models.voice.front_end.config
    tag = config.g2p_language if config.g2p is not None else language_of(config) or "en"
    language, _, region = tag.partition("-")
    region = region.partition("-")[0]
    # A recognizer does not say what language it was trained on: it is taken to be the voice's.
    languages = [f"{language}-{region.upper()}" if len(region) == 2 else language]
    toolkit: dict[str, Any] = {
        "attribution": Attribution("speech-toolkit", ""),
        "installed": True,
        "version": toolkit_version(),
    }
    speakers = [TtsVoiceSpeaker(name) for name in models.voice.speakers]
    name = models.voice_name
    voice = TtsVoice(name, description=name, languages=languages, speakers=speakers, **toolkit)
    speech = TtsProgram(
        "speech-toolkit", description="Speech", voices=[voice], supports_synthesize_streaming=True, **toolkit
    )
    found = Info(tts=[speech])
    if (name := models.recognizer_name) and models.recognizer is not None:
        model = AsrModel(name, description=name, languages=languages, **toolkit)
        found.asr = [AsrProgram("speech-toolkit", description="Transcripts", models=[model], **toolkit)]
    return found
