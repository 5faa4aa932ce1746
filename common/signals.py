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

_SECONDS_TO_TRY_AGAIN = 0.02
_ROOT = Path(__file__).resolve().parents[1]


class TerminatedError(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


def ended_by(error: KeyboardInterrupt) -> tuple[str, int]:
    """What to say of a command that a signal has ended, and its exit status."""
    if isinstance(error, TerminatedError):
        return "stopped by SIGTERM", 128 + signal.SIGTERM
    return "interrupted", 128 + signal.SIGINT


class StopSignals:
    """Within the block, the first SIGTERM or SIGINT only sets ``received``; a second one acts as usual."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        for number in (signal.SIGTERM, signal.SIGINT):
            self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *error: object) -> None:
        self._restore()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number)
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}


def end_at_once_while_importing() -> None:
    """Until `raising` takes over, let Ctrl-C end one of our commands without a traceback of half-done imports.

    Other programs that import us keep their ways.
    """
    program = getattr(sys.modules["__main__"], "__file__", None)
    folders = [] if program is None else list(Path(program).resolve().parents)
    is_ours = folders[:1] == [_ROOT] or _ROOT / "scripts" in folders or sys.argv[0] == "-m"  # -m scripts.name
    if is_ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end_at_once)


def _end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    with suppress(OSError):
        os.write(2, b"interrupted\n")
    os._exit(128 + number)


@contextmanager
def raising() -> Iterator[None]:
    """Within the block, Ctrl-C raises KeyboardInterrupt and SIGTERM raises TerminatedError, unless they are ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    if before[signal.SIGINT] is _end_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if before[signal.SIGTERM] is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _raise_terminated)
    report_unraisable = sys.unraisablehook

    def try_again(unraisable: Any) -> None:
        """In a callback from C, or where an object is deleted, Python would print the exception and go on."""
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            report_unraisable(unraisable)
            return
        number = signal.SIGTERM if isinstance(unraisable.exc_value, TerminatedError) else signal.SIGINT
        again = threading.Timer(_SECONDS_TO_TRY_AGAIN, os.kill, (os.getpid(), number))
        again.daemon = True
        again.start()

    sys.unraisablehook = try_again
    try:
        yield
    finally:
        sys.unraisablehook = report_unraisable
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Within the block, which waits in C where no handler of Python runs, SIGINT and SIGTERM end the process."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise_terminated(number: int, frame: FrameType | None) -> NoReturn:
    raise TerminatedError
