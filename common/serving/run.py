"""The process of a server: where it listens, and how it stops."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn

from common.errors import InputError
from common.serving.app import Service
from common.signals import Requests, heeded

_BACKLOG = 1024  # connections that the system keeps until they are accepted
_TICK = 0.05  # s
_LAST_BYTES = 5  # s in which answers that are complete reach their clients


def bind(host: str, port: int) -> socket.socket:
    """A socket that has the address, and does not accept connections yet.

    Raises:
        InputError: the address is taken, or not this machine's.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        bound = socket.socket(family, kind, protocol)
    except (OSError, OverflowError, UnicodeError) as error:
        raise InputError(f"--host {host} --port {port}: {error}") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise InputError(f"--host {host} --port {port}: {error.strerror}; choose another --port") from error
    return bound


def address_of(bound: socket.socket) -> str:
    """The URL of a socket, for a browser on this machine where it has every address."""
    host, port = bound.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(bound: socket.socket) -> bool:
    """Whether only this machine can connect to it."""
    host = bound.getsockname()[0]
    return host == "::1" or host.startswith("127.")


class Server(uvicorn.Server):
    """An HTTP server of a `Service` that ends its requests before it ends."""

    def __init__(self, service: Service, *, deadline: float, on_start: Callable[[], object] = lambda: None) -> None:
        """``deadline`` s after it was asked to stop it stops; ``on_start`` is called when it accepts connections."""
        super().__init__(
            uvicorn.Config(
                service.gate,
                log_config=None,
                log_level="critical",  # what it would say of cut answers is no error; the gate reports errors
                access_log=False,
                server_header=False,
                backlog=_BACKLOG,
                http="h11",
                ws="none",
                lifespan="off",
                timeout_graceful_shutdown=_LAST_BYTES,
            )
        )
        self._service = service
        self._deadline = deadline
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start uvicorn's server, then call ``on_start``."""
        await super().startup(sockets)
        self._on_start()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the caller's: uvicorn would end the process by the signal that stopped it."""
        yield

    async def serve_until_asked(self, bound: socket.socket, *, signals: bool = True) -> None:
        """Serve until a signal of ``STOPS`` or `ask_to_stop`; a second one stops at once."""
        requests = Requests()

        def receive(number: int) -> None:
            if requests.counts(number):
                self.ask_to_stop()

        for number in heeded() if signals else ():
            asyncio.get_running_loop().add_signal_handler(number, receive, number)
        self._service.start()
        try:
            await self.serve(sockets=[bound])
        finally:
            await asyncio.to_thread(self._service.stop)

    def ask_to_stop(self) -> None:
        """Refuse new requests, and stop when those in work are done; asked again, stop at once."""
        if self._service.gate.draining:
            self.force_exit = self.should_exit = True
            return
        self._service.gate.draining = True
        self._draining = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._deadline
        while self._service.gate.active and loop.time() < end:
            await asyncio.sleep(_TICK)
        self.should_exit = True
