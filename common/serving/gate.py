"""Checks around every request (site, key, queue length, body size and deadline), its metrics and its log line."""

import asyncio
import hmac
import logging
import re
import socket
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Match, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common.errors import shown
from common.serving.errors import ApiError
from common.serving.log import Metrics, RequestRecord
from common.serving.options import Limits

logger = logging.getLogger("serve")
HUNG_UP = 499  # nginx's status for a request whose client disconnected; no client ever sees it
_STALLED = 30.0  # s without more of a body
# Domains where nobody can register names publicly: those of a single machine, of LANs and of containers.
_PRIVATE = (".localhost", ".local", ".internal", ".lan", ".home", ".home.arpa", ".corp", ".test", ".svc")
_NETLOC = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/@\[\]]+?)\.?)(?::[0-9]+)?")
_IPV4 = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}")


class Sites:
    """Distinguishes requests by other sites' pages from those by our own pages and by programs.

    Another site's page can reach the server in two ways: by its address, with another ``Origin``, or by a domain
    that its owner points here (DNS rebinding), with a ``Host`` that isn't one of this server's names.
    """

    def __init__(self, allowed: Collection[str] = (), *, host: str = "") -> None:
        """This server's names include ``host``, the address it listens on, and the hosts of ``allowed`` origins."""
        self.allowed = frozenset(allowed)
        hosts = (_hostname(one.partition("://")[2]) for one in allowed)
        self._names = {host.lower(), socket.gethostname().lower(), *hosts}

    def check(self, headers: Headers) -> None:
        """Raise ApiError for a request from another site's page."""
        host, origin, site = (headers.get(name, "") for name in ("host", "origin", "sec-fetch-site"))
        if origin and not self.allowed.isdisjoint((origin, "*")):
            return
        if host and not self._is_own(_hostname(host)):  # HTTP/1.0, which browsers don't use, may lack it
            what = f"Host {shown(host)} isn't a name of this server; use --allow-origin http(s)://NAME or a key"
            raise ApiError(403, what, code="wrong_host")
        is_own = site == "same-origin" or origin.partition("://")[2] == host.lower() if origin else site != "cross-site"
        if not is_own:
            what = f"pages of other sites may not use this server; start it with --allow-origin {origin or 'ORIGIN'}"
            raise ApiError(403, what, code="cross_site")

    def _is_own(self, name: str) -> bool:
        """Return whether a host is a name of this server, or can't belong to another site."""
        is_address = "." not in name or ":" in name or _IPV4.fullmatch(name)  # or a name without a domain
        return bool(is_address) or "*" in self.allowed or name in self._names or name.endswith(_PRIVATE)

    def share(self, app: ASGIApp) -> ASGIApp:
        """Wrap the application so that pages of the allowed origins can read its answers (CORS)."""
        if not self.allowed:
            return app
        return CORSMiddleware(
            app,
            allow_origins=self.allowed,
            allow_methods=("GET", "HEAD", "POST"),
            allow_headers=("*",),
            allow_private_network=True,
            expose_headers=("X-Sampling-Rate", "Retry-After"),
        )


def _hostname(netloc: str) -> str:
    """Return the host of ``host:port`` without a final dot; "?.?" if it's malformed."""
    found = _NETLOC.fullmatch(netloc.lower())
    return (found[1] or found[2]) if found else "?.?"


class Gate:
    """ASGI middleware that limits the work on paths below ``/v1/audio/``; handlers fill in ``request.state.record``."""

    def __init__(
        self, app: ASGIApp, *, limits: Limits, routes: Collection[BaseRoute], api_key: str | None, sites: Sites
    ) -> None:
        """``/v1/`` and ``/metrics`` require ``api_key`` if given; otherwise ``sites`` decides who may use them."""
        self.active = 0  # requests that hold a place
        self.metrics = Metrics(queue_length=lambda: self.active)
        self._app = app
        self._limits = limits
        self._routes = [one for one in routes if isinstance(one, Route | Mount)]
        self._sites = sites
        self._key = None if api_key is None else api_key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        endpoint = next((one.path for one in self._routes if one.matches(scope)[0] != Match.NONE), "other")
        record = RequestRecord(f"{scope['method']} {endpoint}", endpoint)
        is_complete = False

        async def send_on(message: Message) -> None:
            nonlocal is_complete
            if message["type"] == "http.response.start":
                record.status = message["status"]
                MutableHeaders(scope=message).update({"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"})
            elif message.get("body"):
                record.begin_answer()
            is_complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        # uvicorn omits the body of an answer to HEAD.
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        scope = {**scope, "method": method, "state": {**scope.get("state", {}), "record": record}}
        try:
            self._check(Headers(scope=scope), scope["path"])
            with self.deadline() as time_limit:
                await self._work(scope, receive, send_on, time_limit)
            if not is_complete:
                record.status = HUNG_UP
        except ApiError as error:
            if record.status:  # the answer is truncated, which the client notices
                record.status = error.status_code
            else:
                record.error = error.detail
                await error.response(scope, receive, send_on)
        except Exception:  # the server must survive any error; the client and the log already have it
            record.status = 500
        self.count(record)

    def count(self, record: RequestRecord) -> None:
        """End a request's work, and add it to the metrics and the log."""
        record.finish()
        self.metrics.requests.labels(record.endpoint, str(record.status)).inc()
        self.metrics.seconds.labels(record.endpoint).observe(record.seconds)
        if record.first_byte is not None:
            self.metrics.first_byte.labels(record.endpoint).observe(record.first_byte)

    def _check(self, headers: Headers, path: str) -> None:
        """Raise ApiError if a request lacks the key or, on a server without one, comes from another site's page."""
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
        """Hold a place in the queue within the block; raises ApiError if the queue is full."""
        if self.active >= self._limits.max_queue:
            message = f"{self.active} requests are waiting, which is this server's limit; try again later"
            raise ApiError(503, message, code="queue_full", headers={"Retry-After": "2"})
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1

    @contextmanager
    def deadline(self) -> Iterator[anyio.CancelScope]:
        """Limit the time of the block; raises ApiError when it expires."""
        seconds = self._limits.deadline
        try:
            with anyio.fail_after(seconds) as scope:
                yield scope
        except TimeoutError as error:
            raise ApiError(504, f"not done within {seconds:g} s, this server's limit", code="deadline") from error

    async def _work(self, scope: Scope, receive: Receive, send: Send, time_limit: anyio.CancelScope) -> None:
        """Let the application answer; below ``/v1/audio/``, read the body first, and stop if the client hangs up."""
        if scope["method"] != "POST" or not scope["path"].startswith("/v1/audio/"):
            await self._app(scope, receive, send)
            return
        received = await _with_whole_body(receive, most=self._limits.max_body)
        if received is None:
            return
        with self.place():
            hang_up = asyncio.ensure_future(_until_hung_up(receive))
            hang_up.add_done_callback(lambda _: time_limit.cancel())
            try:
                await self._app(scope, received, send)
            finally:
                hang_up.cancel()


async def _until_hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _with_whole_body(receive: Receive, *, most: int) -> Receive | None:
    """Read the whole body, and return a ``receive`` that replays it; None if the client hung up."""
    body, is_complete = bytearray(), False
    while not is_complete:
        try:
            with anyio.fail_after(_STALLED):
                message = await receive()
        except TimeoutError as error:
            raise ApiError(408, f"received no more of the body within {_STALLED:g} s", code="body_timeout") from error
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
