"""The HTTP interface: its paths, and what answers them."""

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from importlib.util import find_spec
from typing import Annotated, Any, TypeVar

from fastapi import Depends, FastAPI, Form, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartParser
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from torch import Tensor

from common.cli import toolkit_version
from common.errors import InputError, shown
from common.pages.render import render_page
from common.serving import speaking
from common.serving.errors import ApiError, describe_invalid, error_response, without_options
from common.serving.gate import HUNG_UP, Gate, record_of
from common.serving.log import RequestRecord
from common.serving.models import ServedModels, check_model, describe_voice
from common.serving.options import Limits
from common.serving.schema import SpeechRequest, TranscriptionRequest
from common.serving.sites import Sites
from common.serving.sound import SUBTITLES, USUAL_FORMAT, Encoder, decode
from common.serving.studio import page as studio_page
from common.serving.worker import SpeechJob, TranscriptionJob, Worker
from common.synthesis.speech import Speech, SpokenWord, subtitles, subtitles_of

logger = logging.getLogger("serve")
Result = TypeVar("Result")


async def _ending() -> AsyncIterator[ExitStack]:
    """What is done when a request ends, however that happens: answered, failed, out of time, or hung up."""
    with ExitStack() as stack:
        yield stack


Ending = Annotated[ExitStack, Depends(_ending)]
TranscriptionForm = Annotated[TranscriptionRequest, Form()]


class Service:
    """Models behind an ASGI application: `gate`."""

    def __init__(
        self,
        models: ServedModels,
        *,
        limits: Limits,
        api_key: str | None = None,
        sites: Sites | None = None,
        wyoming: socket.socket | None = None,
    ) -> None:
        """``api_key`` None lets everybody in but the pages that ``sites`` refuses. The networks work from the
        application's start-up to its shutdown, and so does Home Assistant's protocol at the address that the socket
        ``wyoming`` has.
        """
        self._wyoming = wyoming
        self.models = models
        self.limits = limits
        self._spoken: Speech | None = None
        self._began = int(time.time())
        self._text = ThreadPoolExecutor(1, thread_name_prefix="text")  # the front end serves one thread
        MultiPartParser.spool_max_size = limits.max_body  # uploads stay in memory
        self._app = FastAPI(
            title="Speech",
            version=toolkit_version(),
            docs_url=None,  # FastAPI's own page loads its script from another host
            redoc_url=None,
            lifespan=self._work,
        )
        self._add_paths()
        self._add_error_handlers()
        routes = [route for route in self._app.routes if isinstance(route, Route)]
        self.gate = Gate(self._app, limits=limits, routes=routes, api_key=api_key, sites=sites or Sites())
        self._worker = Worker(models.recognizer, batch_size=limits.batch_size, metrics=self.gate.metrics)

    def warm_up(self) -> None:
        """Run every network once, in this thread; before the application starts."""
        self._spoken = self.models.warm_up()

    @asynccontextmanager
    async def _work(self, app: FastAPI) -> AsyncIterator[None]:
        """Within the block the networks work; answers that are not complete at its end stay so."""
        self._worker.start()
        beside = None
        if self._wyoming is not None:
            from common.serving.wyoming import WyomingServer  # here, as the package is needed for it alone

            beside = WyomingServer(self, self._wyoming)
            await beside.start()
        try:
            yield
        finally:
            if beside is not None:
                await beside.stop()
            await asyncio.to_thread(self._worker.stop)
            self._text.shutdown(wait=False, cancel_futures=True)

    def _add_paths(self) -> None:
        add = self._app.add_api_route
        add("/v1/audio/speech", self._speak, methods=["POST"], tags=["speech"], response_class=Response)
        transcribe = _refuse_upload if find_spec("python_multipart") is None else self._transcribe
        add("/v1/audio/transcriptions", transcribe, methods=["POST"], tags=["speech"], response_class=Response)
        add("/v1/models", self._list_models, tags=["lists"])
        add("/v1/models/{name}", self._describe_model, tags=["lists"])
        add("/v1/voices", self._list_voices, tags=["lists"])
        add("/v1/audio/voices", self._name_voices, tags=["lists"])
        add("/healthz", self._health, tags=["operation"])
        add("/readyz", self._ready, tags=["operation"])
        add("/metrics", self._metrics, tags=["operation"], response_class=Response)
        add("/docs", lambda: reference_page(self._app.openapi()), response_class=HTMLResponse, include_in_schema=False)
        add("/", studio_page, response_class=HTMLResponse, include_in_schema=False)

    def _add_error_handlers(self) -> None:
        add = self._app.add_exception_handler
        add(RequestValidationError, lambda request, error: _refused(request, describe_invalid(error)))
        add(InputError, lambda request, error: _refused(request, ApiError(400, without_options(str(error)))))
        add(HTTPException, _refused)
        add(ClientDisconnect, lambda *_: Response(status_code=HUNG_UP))
        add(Exception, lambda *_: error_response(ApiError(500, "an internal error, which the server's log has")))

    async def _speak(self, wanted: SpeechRequest, request: Request, ending: Ending) -> Response:
        """Speak a text, SSML, or a prosody table; the answer is streamed in the form that was asked for."""
        check_model(wanted.model, self.models.voice_name, models=self.models)
        record = record_of(request.scope)
        job, answer, warning = await self.begin_speech(wanted, record, ending)
        if wanted.timings and wanted.stream_format == "sse":
            parts = speaking.spoken_parts(job)
            first = await _unless_hung_up(request, anext(parts))
            events = speaking.described_events(first, parts, job, record, warning=warning)
            return StreamingResponse(events, media_type="text/event-stream")
        if wanted.timings:
            speech = await _unless_hung_up(request, speaking.whole_speech(job))
            record.sound = speech.duration
            return JSONResponse(await asyncio.to_thread(speaking.described, speech, warning=warning))
        form = wanted.response_format or USUAL_FORMAT
        if form in SUBTITLES:
            text = subtitles(await _unless_hung_up(request, speaking.whole_speech(job)), form)
            return PlainTextResponse(text, media_type=SUBTITLES[form])
        encoder = Encoder(form, sampling_rate=job.voice.sampling_rate)
        await _unless_hung_up(request, answer.start())
        if wanted.stream_format == "sse":
            return StreamingResponse(answer.events(encoder), media_type="text/event-stream")
        headers = {"X-Sampling-Rate": str(encoder.sampling_rate)}  # which pcm does not say
        return StreamingResponse(answer.encoded(encoder), headers=headers, media_type=encoder.media_type)

    async def begin_speech(
        self, wanted: SpeechRequest, record: RequestRecord, ending: ExitStack
    ) -> tuple[SpeechJob, speaking.Answer, str]:
        """Check what is wanted, and let the worker speak it until ``ending``; with the warning of what was left out.

        Raises:
            ApiError, InputError: what cannot be spoken; says why.
        """
        record.characters = None if wanted.input is None else len(wanted.input)
        models = self.models.of_request(seed=wanted.seed, vocoder_pitch=wanted.vocoder_pitch)
        plan = partial(speaking.plan, wanted, models, max_characters=self.limits.max_characters)
        inputs, warning = await asyncio.get_running_loop().run_in_executor(self._text, plan)
        if warning:
            logger.warning("warning: %s", warning)
        if wanted.like is not None:
            most = self.limits.max_audio_seconds
            inputs = await asyncio.to_thread(speaking.said_like, wanted.like, inputs, models.voice, max_seconds=most)
        job = SpeechJob(models.voice, inputs)
        ending.callback(job.cancel)
        answer = speaking.Answer(job, record)  # before the worker takes what it counts
        self._worker.add(job)
        return job, answer, warning

    def begin_transcript(self, wave: Tensor, record: RequestRecord, ending: ExitStack) -> TranscriptionJob:
        """Let the worker transcribe a wave (T,) at the recognizer's rate until ``ending``."""
        record.sound = len(wave) / self.models.transcriber.sampling_rate
        job = TranscriptionJob(wave)
        ending.callback(job.cancel)
        self._worker.add(job)
        return job

    async def _transcribe(self, form: TranscriptionForm, request: Request, ending: Ending) -> Response:
        """Transcribe a recording: WAV, FLAC, Ogg or MP3."""
        recognizer = self.models.transcriber
        check_model(form.model, self.models.recognizer_name, models=self.models)
        rate, longest = recognizer.sampling_rate, self.limits.max_audio_seconds
        data = await form.file.read()
        wave = await asyncio.to_thread(decode, data, sampling_rate=rate, max_seconds=longest)
        job = self.begin_transcript(wave, record_of(request.scope), ending)
        found = await _unless_hung_up(request, job.take())
        assert found is not None
        if form.response_format == "text":
            return PlainTextResponse(found.text + "\n")
        if form.response_format in SUBTITLES:
            text = subtitles_of([[SpokenWord(found.text, 0.0, found.duration)]], form.response_format)
            return PlainTextResponse(text, media_type=SUBTITLES[form.response_format])
        body: dict[str, Any] = {"text": found.text}
        if form.response_format == "verbose_json":
            segment = {"id": 0, "start": 0.0, "end": found.duration, "text": found.text}
            # A recognizer writes the language that it was trained on, and does not say which that is.
            body |= {"task": "transcribe", "language": "unknown", "duration": found.duration, "segments": [segment]}
        return JSONResponse(body)

    async def _list_models(self) -> dict[str, Any]:
        """The models, in OpenAI's form."""
        names = (self.models.voice_name, self.models.recognizer_name, *self.models.aliases)
        return {"object": "list", "data": [self._row(name) for name in names if self.models.model_of(name)]}

    def _row(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._began, "owned_by": "speech-toolkit"}

    async def _describe_model(self, name: str) -> dict[str, Any]:
        """A model, or the one that a name of OpenAI's or an alias stands for."""
        if not self.models.model_of(name):
            raise ApiError(404, f"no model {shown(name)}; /v1/models has those there are", code="model_not_found")
        return self._row(name)

    async def _name_voices(self) -> dict[str, Any]:
        """The names of voices, as other servers of this interface list them."""
        return {"voices": [{"id": name, "name": name} for name in self.models.voice_names]}

    async def _list_voices(self) -> dict[str, Any]:
        """The voices, with their speakers and what can be set of them."""
        return {"object": "list", "data": [describe_voice(self.models, self._spoken)]}

    async def _health(self) -> dict[str, str]:
        """Says that the process lives."""
        return {"status": "ok"}

    async def _ready(self) -> dict[str, str]:
        """Says whether requests are worked on: 200, or 503."""
        if not self._worker.is_alive:
            raise ApiError(503, "the networks do not work", code="stopping")
        return {"status": "ready"}

    async def _metrics(self) -> Response:
        """Figures for Prometheus."""
        content, media_type = self.gate.metrics.page()
        return Response(content, media_type=media_type)


async def _refuse_upload() -> Response:
    """Stand in for transcripts where forms cannot be read."""
    raise ApiError(501, "transcripts need the package python-multipart on the server")


def _refused(request: Request, error: Any) -> JSONResponse:
    """The answer to a request that failed by an HTTPException, which the log has too."""
    record_of(request.scope).error = " ".join(error.detail.split())
    return error_response(error)


async def _unless_hung_up(request: Request, work: Awaitable[Result]) -> Result:
    """The result of ``work``.

    Raises:
        ClientDisconnect: the client hung up before; the work is canceled.
        Exception: what the work failed with.
    """
    task, hang_up = asyncio.ensure_future(work), asyncio.ensure_future(_disconnect(request))
    try:
        await asyncio.wait((task, hang_up), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        hang_up.cancel()


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def reference_page(description: dict[str, Any]) -> str:
    """The page of an OpenAPI description."""
    info, schemas = description["info"], description["components"]["schemas"]
    operations = []
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            bodies = operation.get("requestBody", {}).get("content", {})
            fields = {kind: schemas[one["schema"]["$ref"].split("/")[-1]]["properties"] for kind, one in bodies.items()}
            tables = {kind: [_row(name, field) for name, field in rows.items()] for kind, rows in fields.items()}
            operations.append((f"{method.upper()} {path}", operation.get("description", ""), tables))
    return render_page("serving/reference.html", title=f"{info['title']} {info['version']}", operations=operations)


def _row(name: str, field: dict[str, Any]) -> tuple[str, str, str]:
    """A field's name, its values in words, and its meaning."""
    kinds = []
    for one in field.get("anyOf", [field]):
        kind = ", ".join(map(str, one.get("enum", ()))) or one.get("type", "any")
        if "minimum" in one and "maximum" in one:
            kind += f" from {one['minimum']:g} to {one['maximum']:g}"
        kinds.append(kind)
    return name, " or ".join(kind for kind in kinds if kind != "null"), field.get("description", "")
