"""Progress bars for long jobs, drawn by tqdm if it's installed."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

from common.errors import OutputError

T = TypeVar("T")
SECONDS_IN_FILES = 30.0  # between bars if stderr isn't a terminal; shorter jobs show none there


class Progress(nullcontext, Generic[T]):
    """A replacement for tqdm's bars that shows nothing."""

    def __init__(self, items: Iterable[T] = ()) -> None:
        super().__init__(self)
        self.items = items

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def update(self, n: float = 1) -> None:
        """Count ``n`` more items."""

    def set_postfix(self, *, refresh: bool = True, **values: object) -> None:
        """Show ``values`` after the bar."""


def progress(
    iterable: Iterable[T] | None = None, *, total: int | None = None, desc: str = "", unit: str, enabled: bool = True
) -> Progress[T]:
    """Show the progress of a loop, or of a job that calls ``update``.

    Either iterate over the result (``for item in progress(items, desc="mels", unit="clip")``), or use it in a ``with``
    block and call ``update(n)``. ``enabled=False`` (on all ranks but the first) shows nothing.
    """
    if not enabled or find_spec("tqdm") is None:
        return Progress(iterable or ())
    from tqdm import tqdm  # here, because speaking one phrase shows no bar

    how: dict[str, Any] = {"dynamic_ncols": True}
    if not sys.stderr.isatty():
        how = {"mininterval": SECONDS_IN_FILES, "delay": SECONDS_IN_FILES}
    elif os.get_terminal_size(sys.stderr.fileno()).columns == 0:
        how = {"ncols": 80, "nrows": 24}  # in some containers' terminals, tqdm would draw an empty bar
    bar: Any = tqdm(iterable, total=total, desc=desc, unit=f" {unit}", **how)
    return bar


def warn(line: str) -> None:
    """Print a warning on stderr, but only in the first process, because all processes read the same files."""
    if os.environ.get("RANK", "0") == "0":
        print(f"warning: {line}", file=sys.stderr)


def print_line(text: str, *, end: str = "\n") -> None:
    """Print a line on stdout, above any bar on the terminal; raises OutputError if it can't be written."""
    bars = sys.modules.get("tqdm") if sys.stderr.isatty() else None
    try:
        with nullcontext() if bars is None else bars.tqdm.external_write_mode(file=sys.stdout):
            print(text, end=end, flush=True)
    except OSError as error:
        discard_output()
        raise OutputError(f"standard output: cannot be written ({error.strerror})") from error


def discard_output() -> None:
    """Discard standard output; otherwise, Python would fail to flush the rest of its buffer at exit."""
    sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 (open until exit)
