"""Asking a command to end: one that imports does at once, a long job finishes what it is doing and saves."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from common.errors import is_first_of_torchrun

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # signals that ask a command to end
_SECONDS_TO_TRY_AGAIN = 0.02
_ROOT = Path(__file__).resolve().parents[1]


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


class Requests:
    """Tells requests to end from signals that only come with one.

    A closed terminal may hang up twice. What a script has started gets SIGTERM when the script ends (``run_child`` of
    ``scripts/lib.sh``), and may have had the signal that ended the script too.
    """

    def __init__(self) -> None:
        self._parent = os.getppid()
        self._made = False

    def counts(self, number: int) -> bool:
        """Whether this signal is a request to end: the first one, or a deliberate further one."""
        if not self._made:
            self._made = True
            return True
        if number == signal.SIGTERM and os.getppid() != self._parent:
            self._parent = os.getppid()
            return False
        return number != signal.SIGHUP


class StopSignals:
    """Within the block, the first of ``STOPS`` only sets ``received``; a second request acts as usual."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._requests = Requests()
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        for number in handled_signals():
            self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *error: object) -> None:
        self._restore()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if not self._requests.counts(number):
            return
        if self.received is None:
            self.received = signal.Signals(number)
            return
        self._restore()
        signal.raise_signal(number)

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}


def end_at_once_while_importing() -> None:
    """Until `signals_as_exceptions` runs, let Ctrl-C end one of our commands without a traceback of half-done imports.

    Other programs that import us keep their ways.
    """
    program = getattr(sys.modules["__main__"], "__file__", None)
    folders = [] if program is None else list(Path(program).resolve().parents)
    is_ours = folders[:1] == [_ROOT] or _ROOT / "scripts" in folders or sys.argv[0] == "-m"  # -m scripts.name
    if is_ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)


def _end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    with suppress(OSError):
        os.write(2, b"interrupted\n" if is_first_of_torchrun() else b"")
    os._exit(128 + number)


@contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Within the block, raise KeyboardInterrupt on Ctrl-C, and TerminatedError on SIGTERM and SIGHUP unless ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in STOPS}
    requests = Requests()

    def end(number: int, frame: FrameType | None) -> None:
        if requests.counts(number):
            raise TerminatedError(number)

    for number, handler in before.items():
        if handler is _end_at_once:
            signal.signal(number, signal.default_int_handler)
        elif handler is signal.SIG_DFL and number != signal.SIGINT:
            signal.signal(number, end)
    report_unraisable = sys.unraisablehook

    def try_again(unraisable: Any) -> None:
        """In a callback from C, or where an object is deleted, Python would print the exception and go on."""
        nonlocal requests
        error = unraisable.exc_value
        if not isinstance(error, KeyboardInterrupt):
            report_unraisable(unraisable)
            return
        requests = Requests()
        number = error.number if isinstance(error, TerminatedError) else signal.SIGINT
        again = threading.Timer(_SECONDS_TO_TRY_AGAIN, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()

    sys.unraisablehook = try_again
    try:
        yield
    finally:
        sys.unraisablehook = report_unraisable
        for number, handler in before.items():  # a second signal during cleanup prints no traceback
            signal.signal(number, signal.SIG_DFL if handler is _end_at_once else handler)


def ignore_stops() -> None:
    """Ignore ``STOPS`` while a command ends already, until the block of `signals_as_exceptions` is left."""
    if threading.current_thread() is threading.main_thread():
        for number in STOPS:
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Let each of ``STOPS`` end the process within the block, which waits in C, where Python handlers do not run."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in handled_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
