"""The HTTP interface: its paths, and what answers them."""

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException

from common.checkpoints.command_line import models_with
from common.cli import toolkit_version
from common.errors import InputError
from common.serving import speaking, transcribing
from common.serving.bodies import BodyReader, file_bytes
from common.serving.errors import ApiError, error_response, field_of, shown
from common.serving.gate import Gate, on_end
from common.serving.limits import Limits
from common.serving.models import RECOGNIZERS, VOICE_MODELS, ServedModels, check_model, describe_voice
from common.serving.reference import reference_page, speech_body, transcription_body
from common.serving.schema import SpeechRequest
from common.serving.sound import FORMATS, Encoder, decode
from common.serving.studio import page as studio_page
from common.serving.worker import SpeechJob, TranscriptionJob, Worker
from common.synthesis import Speech

logger = logging.getLogger("serve")


class Service:
    """Models behind an ASGI application: `gate`."""

    def __init__(self, models: ServedModels, *, limits: Limits, api_key: str | None = None) -> None:
        """``api_key`` None lets everybody in. The networks do nothing before `start`."""
        self._models = models
        self._limits = limits
        self._spoken: Speech | None = None
        self._bodies = BodyReader(max_body=limits.max_body)
        self._began = int(time.time())
        self._text = ThreadPoolExecutor(1, thread_name_prefix="text")  # the front end serves one thread
        self._app = app = FastAPI(
            title="Speech",
            version=toolkit_version(),
            docs_url=None,
            redoc_url=None,
            openapi_url=None,
            redirect_slashes=False,
        )
        self._add_paths()
        paths = [route.path for route in app.routes if hasattr(route, "path")]
        self.gate = Gate(app, limits=limits, paths=paths, api_key=api_key)
        self._worker = Worker(models.recognizer, batch_size=limits.batch_size, metrics=self.gate.metrics)
        app.add_exception_handler(HTTPException, _http_error)
        app.add_exception_handler(ApiError, lambda _, error: error_response(error))
        app.add_exception_handler(InputError, lambda _, error: _input_error(error))
        app.add_exception_handler(
            Exception, lambda *_: error_response(ApiError(500, "an internal error, which the server's log has"))
        )

    def warm_up(self) -> None:
        """Run every network once, in this thread; before `start`."""
        self._spoken = self._models.warm_up()

    def start(self) -> None:
        """Let the networks work."""
        self._worker.start()

    def stop(self) -> None:
        """End the work; answers that are not complete stay so."""
        self._worker.stop()
        self._text.shutdown(wait=False, cancel_futures=True)

    def _add_paths(self) -> None:
        add = self._app.add_api_route
        add("/v1/audio/speech", self._speak, methods=["POST"], tags=["speech"], openapi_extra=speech_body())
        body = transcription_body()
        add("/v1/audio/transcriptions", self._transcribe, methods=["POST"], tags=["speech"], openapi_extra=body)
        add("/v1/models", self._list_models, tags=["lists"])
        add("/v1/voices", self._list_voices, tags=["lists"])
        add("/healthz", self._health, tags=["operation"])
        add("/readyz", self._ready, tags=["operation"])
        add("/metrics", self._metrics, tags=["operation"], response_class=Response)
        add("/openapi.json", self._openapi, include_in_schema=False)
        add("/docs", self._docs, include_in_schema=False)
        add("/", self._studio, include_in_schema=False)

    async def _speak(self, request: Request) -> Response:
        """Speak a text, SSML, or a prosody table; the answer is streamed in the form that was asked for."""
        wanted = await self._bodies.read_json(request, SpeechRequest)
        check_model(wanted.model, self._models.voice_name, aliases=VOICE_MODELS)
        models = self._models.of_request(seed=wanted.seed, vocoder_pitch=wanted.vocoder_pitch)
        voice = models.voice
        form = wanted.response_format or "wav"
        encoder = Encoder(form, sampling_rate=voice.sampling_rate)
        plan = partial(speaking.plan, wanted, models, max_characters=self._limits.max_characters)
        try:
            inputs, warning = await asyncio.get_running_loop().run_in_executor(self._text, plan)
        except InputError as error:
            raise ApiError(400, str(error), param="input" if wanted.prosody is None else "prosody") from error
        if warning:
            logger.warning("warning: %s", warning)
        job = SpeechJob(voice, inputs)
        on_end(request.scope).callback(job.cancel)
        answer = speaking.Answer(job)  # before the worker takes what it counts
        self._worker.add(job)
        if wanted.timings:
            speech = await speaking.whole_speech(job)
            return JSONResponse(await asyncio.to_thread(speaking.described, speech, warning=warning))
        await answer.start()
        if wanted.stream_format == "sse":
            return StreamingResponse(answer.events(encoder), media_type="text/event-stream")
        headers = {"X-Sampling-Rate": str(voice.sampling_rate)}  # which pcm does not say
        return StreamingResponse(answer.encoded(encoder), headers=headers, media_type=FORMATS[form])

    async def _transcribe(self, request: Request) -> Response:
        """Transcribe a recording: WAV, FLAC, Ogg or MP3."""
        recognizer = self._models.recognizer
        if recognizer is None:
            options = " or ".join(f"--{spec.option}" for spec in models_with("recognizer"))
            message = f"this server has no recognizer; start it with {options} and a checkpoint"
            raise ApiError(404, message, code="no_recognizer")
        form = transcribing.parse_form(await self._bodies.read_form(request))
        check_model(form.model, self._models.recognizer_name, aliases=RECOGNIZERS)
        wave = await asyncio.to_thread(
            decode,
            file_bytes(form.file),
            sampling_rate=recognizer.sampling_rate,
            max_seconds=self._limits.max_audio_seconds,
        )
        job = TranscriptionJob(wave)
        on_end(request.scope).callback(job.cancel)
        self._worker.add(job)
        found = await job.take()
        assert found is not None
        return transcribing.transcript(found, form.response_format)

    async def _list_models(self) -> dict[str, Any]:
        """The models, in OpenAI's form."""
        names = filter(None, (self._models.voice_name, self._models.recognizer_name))
        rows = [{"id": name, "object": "model", "created": self._began, "owned_by": "speech-toolkit"} for name in names]
        return {"object": "list", "data": rows}

    async def _list_voices(self) -> dict[str, Any]:
        """The voices, with their speakers and what can be set of them."""
        return {"object": "list", "data": [describe_voice(self._models, self._spoken)]}

    async def _health(self) -> dict[str, str]:
        """Says that the process lives."""
        return {"status": "ok"}

    async def _ready(self) -> Response:
        """Says whether requests are accepted: 200, or 503 while the server stops."""
        if self.gate.draining or not self._worker.is_alive:
            raise ApiError(503, "the server is stopping", code="stopping")
        return JSONResponse({"status": "ready"})

    async def _metrics(self) -> Response:
        """Figures for Prometheus."""
        return Response(self.gate.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    async def _openapi(self) -> JSONResponse:
        return JSONResponse(self._app.openapi())

    async def _docs(self) -> HTMLResponse:
        return HTMLResponse(reference_page(self._app.openapi()))

    async def _studio(self) -> HTMLResponse:
        return HTMLResponse(studio_page())


def _input_error(error: Exception) -> JSONResponse:
    """What was asked for cannot be spoken or transcribed."""
    return error_response(ApiError(400, str(error), param=field_of(str(error))))


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    """An unknown path, or a method that it does not have, as the other errors."""
    assert isinstance(error, HTTPException)
    what = f"{request.method} {shown(request.url.path)}"
    messages = {404: f"{what}: no such path; /docs has them all", 405: f"{what}: the path has another method"}
    headers = dict(error.headers or {})
    return error_response(ApiError(error.status_code, messages.get(error.status_code, error.detail), headers=headers))
