"""Asking a command to end: most do at once, a long job finishes what it is doing and saves."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # signals that ask a command to end
# A closed terminal may hang up twice, and what a script has started gets SIGTERM when the script ends for a signal.
_SECONDS_OF_ONE_REQUEST = 2.0


class TerminatedError(KeyboardInterrupt):
    """SIGTERM or SIGHUP, a closed terminal, which end a command as Ctrl-C does."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = signal.Signals(number)


def ended_by(error: KeyboardInterrupt) -> tuple[str, int]:
    """The message for a command that a signal ended, and its exit status."""
    if isinstance(error, TerminatedError):
        return f"stopped by {error.number.name}", 128 + error.number
    return "interrupted", 128 + signal.SIGINT


def handled_signals() -> list[signal.Signals]:
    """The signals of ``STOPS`` that this process handles: not SIGHUP if it is ignored, as under ``nohup``."""
    return [number for number in STOPS if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN]


class StopSignals:
    """Within the block, the first of ``STOPS`` only sets ``received``; Ctrl-C or a later signal then acts as usual."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._received_at = 0.0
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        self._previous = {number: signal.signal(number, self._receive) for number in handled_signals()}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received is None:
            self.received, self._received_at = signal.Signals(number), time.monotonic()
        elif number == signal.SIGINT or time.monotonic() - self._received_at > _SECONDS_OF_ONE_REQUEST:
            self.__exit__()
            signal.raise_signal(number)


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Within the block, raise KeyboardInterrupt on Ctrl-C, and TerminatedError on SIGTERM and SIGHUP unless ignored.

    A second Ctrl-C ends the process at once, without a traceback of what the first one is ending.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in STOPS}

    def end(number: int, frame: FrameType | None) -> None:
        for one in STOPS:
            signal.signal(one, signal.SIG_DFL if one == signal.SIGINT else signal.SIG_IGN)
        raise KeyboardInterrupt if number == signal.SIGINT else TerminatedError(number)

    for number, handler in before.items():
        if handler in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ignore_stops() -> None:
    """Ignore ``STOPS`` while a command ends already, until the block of `signals_as_exceptions` is left."""
    if threading.current_thread() is threading.main_thread():
        for number in STOPS:
            signal.signal(number, signal.SIG_IGN)


def ending_at_once() -> AbstractContextManager[None]:
    """Let each of ``STOPS`` end the process within the block, which waits in C, where Python handlers do not run."""
    return stops_handled_by(signal.SIG_DFL)


@contextmanager
def stops_handled_by(handler: Any) -> Iterator[None]:
    """Let ``handler`` handle those of ``STOPS`` within the block that are handled outside it."""
    before = {number: signal.signal(number, handler) for number in handled_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
