"""Progress of long jobs: a bar when a terminal watches, a few plain lines when a log file does."""

import os
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

from tqdm import tqdm as Progress

from common.errors import OutputError

T = TypeVar("T")
LINE_EVERY_SECONDS = 30.0


def progress(
    iterable: Iterable[T] | None = None, *, total: int | None = None, desc: str = "", unit: str, enabled: bool = True
) -> "Progress[T]":
    """Watch a loop, or a job that reports by ``update``.

    Iterate over the result to count items as they pass (``for item in progress(items, desc="mels", unit="clip")``), or
    open it with ``with`` and call ``update(n)``. ``total`` is taken from ``len(iterable)`` where it has one.
    ``enabled=False`` (all ranks but the first) shows nothing.
    """
    kind: Any = Progress if sys.stderr.isatty() else _Lines
    shown: dict[str, Any] = {"dynamic_ncols": True}
    if kind is _Lines:
        about = "{desc}{n_fmt}/{total_fmt} {unit}, {elapsed}, {rate_fmt}{postfix}"
        shown = {"mininterval": LINE_EVERY_SECONDS, "miniters": 1, "bar_format": about}
    elif os.get_terminal_size(sys.stderr.fileno()).columns == 0:
        shown = {"ncols": 80, "nrows": 24}  # of some containers' terminals, where tqdm would draw an empty bar
    return kind(iterable, total=total, desc=desc and f"{desc}: ", unit=unit, disable=not enabled, **shown)


class _Lines(Progress):
    """Prints whole lines on stderr: every half minute, and one at the end."""

    monitor_interval = 0  # no thread

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        if self.n or self.disable:
            print(self, file=sys.stderr, flush=True)

    def close(self) -> None:
        if not self.disable:
            self.disable = True
            self.display()


def print_line(text: str, *, end: str = "\n") -> None:
    """Print a line on stdout, above any bar that stands on the terminal; OutputError if it cannot be written."""
    try:
        with Progress.external_write_mode(file=sys.stdout) if sys.stderr.isatty() else nullcontext():
            print(text, end=end, flush=True)
    except OSError as error:
        discard_output()
        raise OutputError(f"standard output: cannot be written ({error.strerror})") from error


def discard_output() -> None:
    """Print nothing more: Python would fail at its end for what is left in the buffer."""
    sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 (until the end)
