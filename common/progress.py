"""Progress bars for long jobs, warnings, and lines on standard output."""

import os
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from common.errors import OutputError

SECONDS_IN_FILES = 30.0  # between bars if stderr isn't a terminal; shorter jobs show none there


def progress(
    iterable: Iterable[Any] | None = None, *, total: int | None = None, desc: str = "", unit: str, enabled: bool = True
) -> Any:
    """Return a tqdm bar over a loop, or for a job that calls ``update``.

    Either iterate over the result (``for item in progress(items, desc="mels", unit="clip")``), or use it in a ``with``
    block and call ``update(n)``. ``enabled=False`` (on all ranks but the first) shows nothing.
    """
    from tqdm import tqdm  # here, because --help shows no bar

    how: dict[str, Any] = {"dynamic_ncols": True}
    if not sys.stderr.isatty():
        how = {"mininterval": SECONDS_IN_FILES, "delay": SECONDS_IN_FILES}
    elif os.get_terminal_size(sys.stderr.fileno()).columns == 0:
        how = {"ncols": 80, "nrows": 24}  # in some containers' terminals, tqdm would draw an empty bar
    return tqdm(iterable, total=total, desc=desc, unit=f" {unit}", disable=not enabled, **how)


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
