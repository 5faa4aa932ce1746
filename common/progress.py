"""Progress of long jobs: a bar when a terminal watches, a few plain lines when a log file does."""

import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from tqdm import tqdm

T = TypeVar("T")

LINE_EVERY_FRACTION = 0.1  # of the job's total
LINE_EVERY_SECONDS = 30.0
LINE_AT_MOST_EVERY_SECONDS = 2.0  # a job of a second needs one line, not ten


def progress(
    iterable: Iterable[T] | None = None,
    *,
    total: int | None = None,
    desc: str = "",
    unit: str = "it",
    enabled: bool = True,
) -> "Progress[T]":
    """Watch a loop, or a job that reports by ``update``.

    Iterate over the result to count items as they pass (``for item in progress(items, desc="mels")``), or open
    it with ``with`` and call ``update(n)``. ``total`` is taken from ``len(iterable)`` where it has one.
    ``enabled=False`` (all ranks but the first) shows nothing and keeps counting.
    """
    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    kind: type[Progress[T]] = Progress
    if enabled:
        kind = BarProgress if sys.stderr.isatty() else LineProgress
    return kind(iterable, total, desc, unit)


def print_line(text: str) -> None:
    """Print a line on stdout, above any bar that stands on the terminal."""
    if sys.stderr.isatty():
        tqdm.write(text, file=sys.stdout)
        sys.stdout.flush()
    else:
        print(text, flush=True)


@dataclass
class Progress(Generic[T]):
    """Counts and shows nothing; the base of the two that show."""

    iterable: Iterable[T] | None
    total: int | None
    desc: str
    unit: str
    n: int = 0  # items done
    postfix: dict[str, Any] = field(default_factory=dict)
    closed: bool = False

    def __post_init__(self) -> None:
        """Open the display."""

    def update(self, n: int = 1) -> None:
        """Count ``n`` more items as done."""
        self.n += n
        self._show()

    def set_postfix(self, **values: Any) -> None:
        """Figures to stand behind the count, such as ``loss="0.52"``; they appear with the next refresh."""
        self.postfix = values

    def close(self) -> None:
        """Show the final state; further calls do nothing."""
        if not self.closed:
            self.closed = True
            self._finish()

    def __iter__(self) -> Iterator[T]:
        if self.iterable is None:
            raise TypeError("progress() without an iterable counts by update(), it cannot be iterated")
        try:
            for item in self.iterable:
                yield item
                self.update()
        finally:
            self.close()

    def __enter__(self) -> "Progress[T]":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _show(self) -> None:
        """Refresh the display after ``n`` or the postfix changed."""

    def _finish(self) -> None:
        """Leave the display in its final state."""


class BarProgress(Progress[T]):
    """A ``tqdm`` bar on stderr."""

    def __post_init__(self) -> None:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
        # Some containers' terminals say they have no columns or rows, and tqdm would then draw an empty bar.
        size: dict[str, Any] = {"dynamic_ncols": True} if columns else {"ncols": 80, "nrows": 24}
        self.bar = tqdm(total=self.total, desc=self.desc or None, unit=self.unit, file=sys.stderr, **size)

    def set_postfix(self, **values: Any) -> None:
        super().set_postfix(**values)
        self.bar.set_postfix(values, refresh=False)

    def _show(self) -> None:
        self.bar.update(self.n - self.bar.n)

    def _finish(self) -> None:
        self.bar.close()


class LineProgress(Progress[T]):
    """Plain lines on stderr: every tenth of the job or every half minute, and one at the end."""

    def __post_init__(self) -> None:
        self.started = self.last_time = time.monotonic()
        self.last_n = 0

    def _show(self) -> None:
        waited = time.monotonic() - self.last_time
        step = max(1.0, self.total * LINE_EVERY_FRACTION) if self.total else math.inf
        passed = self.n // step > self.last_n // step
        if waited >= LINE_EVERY_SECONDS or (waited >= LINE_AT_MOST_EVERY_SECONDS and passed):
            self._print()

    def _print(self) -> None:
        elapsed = time.monotonic() - self.started
        done = f"{self.n}/{self.total}" if self.total is not None else f"{self.n}"
        parts = [f"{done} {self.unit}", f"{elapsed:.1f} s"]
        if self.n and elapsed > 0:
            parts.append(f"{self.n / elapsed:.4g} {self.unit}/s")
        parts += [f"{name} {value}" for name, value in self.postfix.items()]
        print(": ".join(filter(None, [self.desc, ", ".join(parts)])), file=sys.stderr, flush=True)
        self.last_time, self.last_n = time.monotonic(), self.n

    def _finish(self) -> None:
        if self.last_n != self.n or self.n == 0:
            self._print()
