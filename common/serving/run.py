"""The process of a server: where it listens, and how it stops."""

import contextlib
import math
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn

from common.errors import InputError
from common.serving.app import Service
from common.signals import handled_signals


def bind(host: str, port: int) -> socket.socket:
    """A socket that has the address, and does not accept connections yet.

    Raises:
        InputError: the address is taken, or not this machine's.
    """
    bound = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
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
    """uvicorn's server of a `Service`, which a signal of ``STOPS`` ends with exit status 0."""

    def __init__(self, service: Service, *, deadline: float, on_start: Callable[[], object] = lambda: None) -> None:
        """``deadline`` s after it was asked to stop it stops; ``on_start`` is called when it accepts connections."""
        super().__init__(
            uvicorn.Config(
                service.gate,
                log_config=None,
                log_level="critical",  # what it would say of cut answers is no error; the gate reports errors
                access_log=False,
                http="h11",
                timeout_graceful_shutdown=math.ceil(deadline),
            )
        )
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start uvicorn's server, then call ``on_start``."""
        await super().startup(sockets)
        self._on_start()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let signals ask to stop; uvicorn's own would then end the process by the signal."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = {number: signal.signal(number, self.handle_exit) for number in handled_signals()}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
