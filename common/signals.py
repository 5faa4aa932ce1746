"""Signals that ask a command to end: most commands end at once, long jobs save first."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # signals that ask a command to end


def ended_by(error: KeyboardInterrupt) -> tuple[str, int]:
    """Return the message and the exit status of a command that a signal ended."""
    number = error.args[0] if error.args else signal.SIGINT
    return "interrupted" if number == signal.SIGINT else f"stopped by {number.name}", 128 + number


@contextmanager
def stops_handled_by(handler: Any) -> Iterator[None]:
    """Within the block, handle ``STOPS`` with ``handler``, except ignored ones, such as SIGHUP under ``nohup``."""
    before = {number: signal.getsignal(number) for number in STOPS}
    for number, other in before.items():
        if other is not signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, other in before.items():
            signal.signal(number, other)


def raise_stop(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt for one of ``STOPS``; a second Ctrl-C ends the process at once, without a traceback."""
    for one in STOPS:
        signal.signal(one, signal.SIG_DFL if one == signal.SIGINT else signal.SIG_IGN)
    raise KeyboardInterrupt(signal.Signals(number))


class StopSignals(ExitStack):
    """Within the block, the first of ``STOPS`` sets ``received``; a later Ctrl-C raises; others are ignored.

    Signals can repeat: a closed terminal may send SIGHUP twice, and a script that a signal ends sends SIGTERM.
    """

    received: signal.Signals | None = None

    def __enter__(self) -> "StopSignals":
        self.enter_context(stops_handled_by(self._receive))
        return self

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received is None:
            self.received = signal.Signals(number)
        elif number == signal.SIGINT:
            raise_stop(number, frame)
