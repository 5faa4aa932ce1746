"""The checks around every request: origin, key, queue length, body size and deadline; and its metrics and log line."""

import hmac
import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from typing import Any, cast

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common.serving.errors import ApiError, error_response
from common.serving.log import RequestRecord
from common.serving.options import Limits
from common.serving.sites import Sites, preflight_headers

logger = logging.getLogger("serve")
HUNG_UP = 499  # as nginx calls a request whose client went away; no client ever sees it
_STALLED = 30.0  # s in which nothing more of a body comes


class Gate:
    """An ASGI application around another one, whose work on paths below ``/v1/audio/`` is bounded."""

    def __init__(
        self, app: ASGIApp, *, limits: Limits, routes: Collection[Route], api_key: str | None, sites: Sites
    ) -> None:
        """``routes`` are the application's; with ``api_key``, ``/v1/`` and ``/metrics`` ask for it, else ``sites`` says
        which pages may use it."""
        self.active = 0  # requests for work
        self.metrics = Metrics(queue_length=lambda: self.active)
        self._app = app
        self._limits = limits
        self._routes = routes
        self._sites = sites
        self._key = None if api_key is None else api_key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        endpoint = next((one.path for one in self._routes if one.matches(scope)[0] != Match.NONE), "other")
        record = RequestRecord(f"{scope['method']} {endpoint}", endpoint)
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        answer = _Answer(send, record, self._sites.answer_headers(origin))
        # uvicorn sends no body to those who ask for the head.
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        scope = {**scope, "method": method, "state": {**scope.get("state", {}), "record": record}}
        try:
            if method == "OPTIONS" and self._sites.allows(origin):
                await Response(status_code=204, headers=preflight_headers(headers))(scope, receive, answer.send)
            else:
                self._check(headers, scope["path"])
                await self._work(scope, receive, answer)
        except ApiError as error:
            record.error = error.detail
            await error_response(error)(scope, receive, answer.send)
        except Exception:  # the server must survive any error; the client got a 500
            logger.exception("error: %s", record.what)
            record.status = 500
        self.count(record)

    def count(self, record: RequestRecord) -> None:
        """Take a request that is over into the figures and the log."""
        self.metrics.requests.labels(record.endpoint, str(record.status)).inc()
        self.metrics.seconds.labels(record.endpoint).observe(record.finish())
        if record.first_byte is not None:
            self.metrics.first_byte.labels(record.endpoint).observe(record.first_byte)
        record.log()

    def _check(self, headers: Headers, path: str) -> None:
        """Raise ApiError without the key; where there is none, for pages of other sites, which would not have it."""
        if self._key is None:
            self._sites.check(headers)
        if self._key is None or not (path.startswith("/v1/") or path == "/metrics"):
            return
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode("latin-1"), self._key):
            what = "wrong API key" if given else "no API key"
            message = f"{what}: send the server's key in the header Authorization: Bearer KEY"
            raise ApiError(401, message, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})

    @contextmanager
    def place(self) -> Iterator[None]:
        """Within the block a request for work has one of the places; raises ApiError where all are taken."""
        if self.active >= self._limits.max_queue:
            message = f"{self.active} requests are waiting, which is this server's limit; try again later"
            raise ApiError(503, message, code="queue_full", headers={"Retry-After": "2"})
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1

    async def _work(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        """Let the application read a body of bounded size, and answer until the deadline."""
        deadline = self._limits.deadline  # s
        is_work = scope["method"] == "POST" and scope["path"].startswith("/v1/audio/")
        with anyio.move_on_after(deadline) as time_limit:
            received = await _with_whole_body(receive, most=self._limits.max_body) if is_work else receive
            if received is not None:
                with self.place() if is_work else nullcontext():
                    await self._app(scope, received, answer.send)
        if time_limit.cancelled_caught and not answer.record.status:
            raise ApiError(504, f"not done within {deadline:g} s, this server's limit", code="deadline")
        if not answer.is_complete:  # the client sees that
            answer.record.status = 504 if time_limit.cancelled_caught else HUNG_UP


async def _with_whole_body(receive: Receive, *, most: int) -> Receive | None:
    """What gives the body, which is read first, so that no client that holds it back has a place; None: it hung up.

    Raises:
        ApiError: nothing more of it came, or more than ``most`` bytes.
    """
    body, is_complete = bytearray(), False
    while not is_complete:
        try:
            with anyio.fail_after(_STALLED):
                message = await receive()
        except TimeoutError as error:
            raise ApiError(408, f"no more of the body came within {_STALLED:g} s", code="body_timeout") from error
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > most:
            raise ApiError(413, f"the body has more than {most} bytes, this server's limit", code="body_too_large")
        is_complete = not message.get("more_body", False)
    whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def receive_again() -> Message:
        return whole.pop() if whole else await receive()

    return receive_again


class _Answer:
    """Where an answer goes, with what is measured of it."""

    def __init__(self, send: Send, record: RequestRecord, headers: dict[str, str]) -> None:
        self.record = record
        self._headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", **headers}
        self.is_complete = False
        self._send = send

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.record.status = message["status"]
            MutableHeaders(scope=message).update(self._headers)
        elif message["type"] == "http.response.body":
            if message.get("body"):
                self.record.begin_answer()
            self.is_complete = not message.get("more_body", False)
        await self._send(message)


def record_of(scope: Scope) -> RequestRecord:
    """The record of a request, which its work fills in."""
    return cast(RequestRecord, scope["state"]["record"])


_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class _Uncounted:
    """Stands in for prometheus-client's metrics where it is not installed."""

    def labels(self, *values: str) -> "_Uncounted":
        return self

    def inc(self, amount: float = 1) -> None:
        pass

    def observe(self, amount: float) -> None:
        pass


class Metrics:
    """Prometheus metrics of one server, in their own registry; none if prometheus-client is not installed."""

    def __init__(self, *, queue_length: Callable[[], int]) -> None:
        """``queue_length()`` is asked for when the figures are read."""
        self.registry: Any = None
        uncounted: Any = _Uncounted()
        self.requests = self.seconds = self.first_byte = self.audio = self.batch = uncounted
        if find_spec("prometheus_client") is None:
            return
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "speech_requests", "Requests by path and status (499: hung up)", ("endpoint", "status"), registry=registry
        )
        times = partial(Histogram, labelnames=("endpoint",), buckets=_SECONDS, registry=registry)
        self.seconds = times("speech_request_seconds", "Time of a request")
        self.first_byte = times("speech_first_byte_seconds", "Time to the first byte of the answer")
        queue = Gauge("speech_queue_length", "Requests that wait or are in work", registry=registry)
        queue.set_function(queue_length)
        self.audio = Counter("speech_audio_seconds", "Seconds of sound that were made", registry=registry)
        text = "Utterances, or recordings, that a network took at once"
        self.batch = Histogram("speech_batch_size", text, ("work",), buckets=_SIZES, registry=registry)
        ProcessCollector(registry=registry)  # process_resident_memory_bytes among others

    def page(self) -> tuple[bytes, str]:
        """All figures as Prometheus reads them, and their media type; raises ApiError where none are kept."""
        if self.registry is None:
            raise ApiError(501, "this server keeps no figures; they need the package prometheus-client there")
        from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

        return generate_latest(self.registry), CONTENT_TYPE_LATEST
