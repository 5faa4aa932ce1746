"""What every request passes: key, places, deadline, hang-up and figures; the application behind it does the work."""

import asyncio
import hmac
import logging
import time
from collections.abc import Collection, MutableMapping
from contextlib import ExitStack
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common.serving.errors import ApiError, error_response
from common.serving.limits import Limits
from common.serving.metrics import OTHER, Metrics

logger = logging.getLogger("serve")
HUNG_UP = 499  # as nginx calls a request whose client went away; no client ever sees it
_RETRY_AFTER = 2  # s
_ON_END = "serve.on_end"  # where a request's scope keeps what is to be done when it ends


def on_end(scope: MutableMapping[str, Any]) -> ExitStack:
    """What is done when a request ends, however that happens: answered, failed, out of time, or hung up."""
    return scope[_ON_END]


class Gate:
    """An ASGI application around another one, whose work on paths below ``/v1/audio/`` is bounded."""

    def __init__(self, app: ASGIApp, *, limits: Limits, paths: Collection[str], api_key: str | None) -> None:
        """``paths`` are the application's; with ``api_key``, ``/v1/`` and ``/metrics`` ask for it."""
        self.active = 0  # requests for work
        self.draining = False  # True: no new work is accepted
        self.metrics = Metrics(queue_length=lambda: self.active)
        self._app = app
        self._limits = limits
        self._paths = frozenset(paths)
        self._key = None if api_key is None else api_key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        answer = _Answer(send)
        try:
            self._check_key(scope)
            if scope["method"] == "POST" and path.startswith("/v1/audio/") and path in self._paths:
                await self._work(scope, receive, answer)
            else:
                await self._app(scope, receive, answer.send)
        except ApiError as error:
            await error_response(error)(scope, receive, answer.send)
        except Exception:  # whatever it is, the server goes on; the client was told of an internal error
            logger.exception("error: %s %s", scope["method"], path if path in self._paths else OTHER)
        self._record(path, answer)

    def _check_key(self, scope: Scope) -> None:
        headers, path = Headers(scope=scope), scope["path"]
        if scope["method"] == "POST" and headers.get("sec-fetch-site") == "cross-site":
            raise ApiError(403, "pages of other sites may not use this server", code="cross_site")
        if self._key is None or not (path.startswith("/v1/") or path == "/metrics"):
            return
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode("latin-1"), self._key):
            what = "wrong API key" if given else "no API key"
            raise ApiError(
                401,
                f"{what}: send the server's key in the header Authorization: Bearer KEY",
                code="invalid_api_key",
                headers={"WWW-Authenticate": "Bearer"},
            )

    async def _work(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        """Give the request a place, and end it when its client hangs up or its time is over."""
        retry = {"Retry-After": str(_RETRY_AFTER)}
        if self.draining:
            raise ApiError(503, "the server is stopping", code="stopping", headers=retry)
        if self.active >= self._limits.max_queue:
            message = f"{self.active} requests are waiting, which is this server's limit; try again later"
            raise ApiError(503, message, code="queue_full", headers=retry)
        self.active += 1
        incoming = _Incoming(receive)
        with ExitStack() as ends:
            scope[_ON_END] = ends
            work = asyncio.ensure_future(self._app(scope, incoming.receive, answer.send))
            hang_up = asyncio.ensure_future(incoming.watch())
            try:
                await asyncio.wait((work, hang_up), timeout=self._limits.deadline, return_when=asyncio.FIRST_COMPLETED)
                cut = None if work.done() else HUNG_UP if hang_up.done() else 504
            finally:
                for task in (work, hang_up):
                    task.cancel()
                await asyncio.wait((work, hang_up))
                self.active -= 1
        if cut is None:
            work.result()
        elif cut == 504 and not answer.started:
            raise ApiError(504, f"not done within {self._limits.deadline:g} s, this server's limit", code="deadline")
        else:  # an answer that has begun ends here, and its client sees that it is not complete
            answer.status = cut

    def _record(self, path: str, answer: "_Answer") -> None:
        endpoint = path if path in self._paths else OTHER
        self.metrics.requests.labels(endpoint, str(answer.status or HUNG_UP)).inc()
        self.metrics.seconds.labels(endpoint).observe(time.monotonic() - answer.began)
        if answer.first_byte is not None:
            self.metrics.first_byte.labels(endpoint).observe(answer.first_byte)


class _Answer:
    """Where an answer goes, with what is measured of it."""

    def __init__(self, send: Send) -> None:
        self.began = time.monotonic()
        self.status = 0
        self.started = False
        self.first_byte: float | None = None  # s
        self._send = send

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started, self.status = True, message["status"]
            MutableHeaders(scope=message).update({"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"})
        elif message.get("body") and self.first_byte is None:
            self.first_byte = time.monotonic() - self.began
        await self._send(message)


class _Incoming:
    """A request's body, and after it the notice that its client has hung up."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read = asyncio.Event()  # the body is
        self._gone = asyncio.Event()

    async def receive(self) -> Message:
        if self._read.is_set():
            await self._gone.wait()
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._gone.set()
            self._read.set()
            await asyncio.Event().wait()  # until the gate cancels who reads
        if not message.get("more_body", False):
            self._read.set()
        return message

    async def watch(self) -> None:
        """Return when the client has hung up."""
        await self._read.wait()
        while not self._gone.is_set():
            if (await self._receive())["type"] == "http.disconnect":
                self._gone.set()
