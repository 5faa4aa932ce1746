"""The HTTP interface: its paths and their handlers."""

import asyncio
import logging
import re
import socket
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Form, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from markupsafe import Markup
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartParser
from torch import Tensor

from common.cli import toolkit_version
from common.errors import InputError, shown
from common.pages.render import NAME, PALETTE, STYLESHEET, render_template
from common.serving import speaking
from common.serving.errors import ApiError, api_error
from common.serving.gate import Gate, Sites
from common.serving.log import RequestRecord
from common.serving.models import ServedModels, check_model, describe_voice
from common.serving.options import Limits
from common.serving.schema import SpeechRequest, TranscriptionRequest
from common.serving.sound import SUBTITLES, USUAL_FORMAT, Encoder, decode_upload
from common.serving.transcripts import transcript_answer
from common.serving.worker import SpeechJob, TranscriptionJob, Worker
from common.synthesis.speech import subtitles
from common.synthesis.utterances import SynthesisResult

logger = logging.getLogger("serve")
STUDIO = Path(__file__).parent / "studio"  # the page's scripts, served unchanged


@cache
def studio_page() -> str:
    """Return the studio's HTML. Its policy only allows scripts from its own server, and requests to it."""
    # Repeat the palette's colors, for users who choose light or dark on the page.
    light, dark = re.findall(r":root \{(.*?)\}", PALETTE, re.DOTALL)
    rule = ':root[data-theme="{0}"] {{{1}  color-scheme: {0};\n}}\n'
    style = STYLESHEET + rule.format("light", light) + rule.format("dark", dark)
    style += (STUDIO / "studio.css").read_text(encoding="utf-8")
    policy = "default-src 'none'; connect-src 'self'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'"
    policy += "; form-action 'none'; script-src 'self'"
    return render_template("serving/studio.html", policy=Markup(policy), product=NAME, style=Markup(style))


class Service:
    """Serves models over HTTP; `asgi` is the ASGI application."""

    def __init__(
        self,
        models: ServedModels,
        *,
        limits: Limits,
        api_key: str | None = None,
        sites: Sites | None = None,
        wyoming: socket.socket | None = None,
    ) -> None:
        """Without ``api_key``, everyone is admitted except pages that ``sites`` refuses; ``wyoming`` is a bound socket
        for Home Assistant's protocol.
        """
        self._wyoming = wyoming
        self.models = models
        self.limits = limits
        self._spoken: SynthesisResult | None = None
        self._began = int(time.time())
        self._text = ThreadPoolExecutor(1, thread_name_prefix="text")  # the front end isn't thread-safe
        MultiPartParser.spool_max_size = limits.max_body  # uploads stay in memory
        # FastAPI's own documentation page would load its script from another host.
        self._app = FastAPI(
            title="Speech", version=toolkit_version(), docs_url=None, redoc_url=None, lifespan=self._work
        )
        add = self._app.add_api_route
        add("/v1/audio/speech", self._speak, methods=["POST"], tags=["speech"], response_class=Response)
        add("/v1/audio/transcriptions", self._transcribe, methods=["POST"], tags=["speech"], response_class=Response)
        add("/v1/models", self._list_models, tags=["lists"])
        add("/v1/models/{name}", self._describe_model, tags=["lists"])
        add("/v1/voices", self._list_voices, tags=["lists"])
        add("/v1/audio/voices", self._name_voices, tags=["lists"])
        add("/healthz", self._health, tags=["operation"])
        add("/readyz", self._ready, tags=["operation"])
        add("/metrics", self._metrics, tags=["operation"], response_class=Response)
        add("/", studio_page, response_class=HTMLResponse, include_in_schema=False)
        self._app.mount("/studio", StaticFiles(directory=STUDIO))
        for kind in (RequestValidationError, InputError, HTTPException, Exception):
            self._app.add_exception_handler(kind, _refuse)
        sites = sites or Sites()
        self.gate = Gate(self._app, limits=limits, routes=self._app.routes, api_key=api_key, sites=sites)
        self.asgi = sites.share(self.gate)
        self._worker = Worker(models.recognizer, batch_size=limits.batch_size, metrics=self.gate.metrics)

    def warm_up(self) -> None:
        """Run every network once in this thread; call this before the application starts."""
        self._spoken = self.models.warm_up()

    @asynccontextmanager
    async def _work(self, app: FastAPI) -> AsyncIterator[None]:
        """Run the worker within the block; answers that are unfinished at its end stay unfinished."""
        self._worker.start()
        async with AsyncExitStack() as stack:
            stack.callback(self._text.shutdown, wait=False, cancel_futures=True)
            stack.push_async_callback(asyncio.to_thread, self._worker.stop)
            if self._wyoming is not None:
                from common.serving import wyoming  # here, because nothing else needs the package

                await stack.enter_async_context(wyoming.answering(self, self._wyoming))
            yield

    async def _speak(self, wanted: SpeechRequest, request: Request) -> Response:
        """Speak text, SSML or a prosody table, and stream the answer in the requested format."""
        check_model(wanted.model, self.models.voice_name, models=self.models)
        record: RequestRecord = request.state.record
        planned = await self.plan(wanted, record)
        warning = planned.warning
        if wanted.show:
            read = [(item.reading or item.text, planned.voice.phones_of(item)) for item in planned.inputs]
            rows = [{"words": words, "phones": phones} for words, phones in read]
            return JSONResponse({"utterances": rows, "warning": warning or None})
        job = self.start_speech(planned, record)
        form = wanted.response_format or USUAL_FORMAT
        if wanted.timings and wanted.stream_format == "sse":
            events = await speaking.begun(speaking.described_events(job, warning=warning))
            return StreamingResponse(speaking.server_sent(events), media_type="text/event-stream")
        if wanted.timings:
            speech = await speaking.whole_speech(job)
            return JSONResponse(await asyncio.to_thread(speaking.described, speech, warning=warning))
        if form in SUBTITLES:
            return PlainTextResponse(subtitles(await speaking.whole_speech(job), form), media_type=SUBTITLES[form])
        encoder = Encoder(form, sampling_rate=job.voice.sampling_rate)
        if wanted.stream_format == "sse":
            events = await speaking.begun(speaking.audio_events(job, encoder))
            return StreamingResponse(speaking.server_sent(events), media_type="text/event-stream")
        headers = {"X-Sampling-Rate": str(encoder.sampling_rate)}  # pcm has no header to state it
        sound = await speaking.begun(speaking.encoded(job, encoder))
        return StreamingResponse(sound, headers=headers, media_type=encoder.media_type)

    async def plan(self, wanted: SpeechRequest, record: RequestRecord) -> speaking.Plan:
        """Plan a request; raises ApiError or InputError if it can't be spoken."""
        record.characters = None if wanted.input is None else len(wanted.input)
        work = partial(speaking.plan, wanted, self.models, max_characters=self.limits.max_characters)
        planned = await asyncio.get_running_loop().run_in_executor(self._text, work)
        if planned.warning:
            logger.warning("warning: %s", planned.warning)
        return planned

    def start_speech(self, planned: speaking.Plan, record: RequestRecord) -> SpeechJob:
        """Queue a plan for the worker; the job ends with the request of ``record``."""
        return self._worker.add(SpeechJob(planned.voice, planned.inputs, record))

    def start_transcript(self, wave: Tensor, record: RequestRecord) -> TranscriptionJob:
        """Queue a wave (T,) at the recognizer's rate; the job ends with the request of ``record``."""
        record.sound = len(wave) / self.models.transcriber.sampling_rate
        return self._worker.add(TranscriptionJob(wave, record))

    async def _transcribe(self, form: Annotated[TranscriptionRequest, Form()], request: Request) -> Response:
        """Transcribe a recording."""
        rate, longest = self.models.transcriber.sampling_rate, self.limits.max_audio_seconds
        check_model(form.model, self.models.recognizer_name, models=self.models)
        data = await form.file.read()
        wave = await asyncio.to_thread(decode_upload, data, sampling_rate=rate, max_seconds=longest)
        found = await self.start_transcript(wave, request.state.record).take()
        assert found is not None
        return transcript_answer(found, form.response_format)

    async def _list_models(self) -> dict[str, Any]:
        """List the models in OpenAI's format."""
        names = (self.models.voice_name, self.models.recognizer_name, *self.models.aliases)
        return {"object": "list", "data": [self._row(name) for name in names if self.models.model_of(name)]}

    def _row(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._began, "owned_by": "speech-toolkit"}

    async def _describe_model(self, name: str) -> dict[str, Any]:
        """Describe a model, given its name, an alias or one of OpenAI's names."""
        if not self.models.model_of(name):
            raise ApiError(404, f"no model {shown(name)}; /v1/models lists the models", code="model_not_found")
        return self._row(name)

    async def _name_voices(self) -> dict[str, Any]:
        """List the values of a request's ``voice``, except OpenAI's names, as similar servers do."""
        speakers = self.models.voice.speakers
        names = [self.models.voice_name, *speakers[: len(speakers) * (len(speakers) > 1)]]
        names += [name for name, meant in self.models.aliases.items() if meant in names and name not in names]
        return {"voices": [{"id": name, "name": name} for name in names]}

    async def _list_voices(self) -> dict[str, Any]:
        """List the voices with their speakers and capabilities."""
        return {"object": "list", "data": [describe_voice(self.models, self._spoken)]}

    async def _health(self) -> dict[str, str]:
        """Report that the process is alive."""
        return {"status": "ok"}

    async def _ready(self) -> dict[str, str]:
        """Report whether requests are processed: 200 or 503."""
        if not self._worker.is_alive():
            raise ApiError(503, "the worker has stopped", code="stopping")
        return {"status": "ready"}

    async def _metrics(self) -> Response:
        """Return the metrics for Prometheus."""
        return Response(generate_latest(self.gate.metrics.registry), media_type=CONTENT_TYPE_LATEST)


def _refuse(request: Request, error: Exception) -> JSONResponse:
    """Answer a failed request, and add the error to its log line."""
    failure = api_error(error)
    request.state.record.error = failure.detail
    return failure.response
