"""The HTTP server's socket, connections and signals."""

import asyncio
import math
import socket
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from common.errors import InputError
from common.serving.app import Service
from common.signals import stops_handled_by

_HEAD = 20.0  # s for a request's head to arrive, after the connection or the previous answer


def bind(host: str, port: int, *, options: str = "") -> socket.socket:
    """Bind a socket that doesn't listen yet; raises InputError, naming ``options``, if the address is taken."""
    # asyncio only sets TCP_NODELAY on a socket whose protocol is TCP; without it, clients wait 40 ms.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        named = options or f"--host {host} --port {port}"
        raise InputError(f"{named}: {error.strerror}; choose another {'address' if options else '--port'}") from error
    return bound


def address_of(bound: socket.socket, *, scheme: str = "http") -> str:
    """Return the URL of a socket; if it has all addresses, the one for a client on this machine."""
    host, port = bound.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def is_loopback(bound: socket.socket) -> bool:
    """Return whether only this machine can connect to it."""
    host = bound.getsockname()[0]
    return host == "::1" or host.startswith("127.")


class _Protocol(H11Protocol):
    """A connection that is closed if a request's head doesn't arrive in time; uvicorn only closes idle ones."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request."""
        super().connection_made(transport)
        self._wait_for_head()

    def on_response_complete(self) -> None:
        """Start waiting for the next one."""
        self._wait_for_head()
        super().on_response_complete()

    def _wait_for_head(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(_HEAD, self._close_unless_asked)

    def _close_unless_asked(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.abort()


class Server(uvicorn.Server):
    """Runs a `Service` with uvicorn; a signal in ``STOPS`` ends it with exit status 0."""

    def __init__(self, service: Service, *, deadline: float, on_start: Callable[[], object] = lambda: None) -> None:
        """It stops at most ``deadline`` s after it's asked to; ``on_start`` is called once it accepts connections."""
        # uvicorn would report truncated answers as errors; the gate reports the actual ones.
        silent: Any = {"log_config": None, "log_level": "critical", "access_log": False}
        end = math.ceil(deadline)
        super().__init__(uvicorn.Config(service.asgi, http=_Protocol, timeout_graceful_shutdown=end, **silent))
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start uvicorn's server, then call ``on_start``."""
        await super().startup(sockets)
        self._on_start()

    def capture_signals(self) -> Any:  # a context manager
        """Let signals ask the server to stop; uvicorn's own handler would also end the process with the signal."""
        is_main = threading.current_thread() is threading.main_thread()
        return stops_handled_by(self.handle_exit) if is_main else nullcontext()
