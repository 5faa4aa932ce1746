"""How long tests wait for what never comes: no result depends on how fast a machine is."""

import time
from collections.abc import Callable

# At least ten times what a busy, slow machine needs; whatever waits longer hangs.
HANG_LIMIT = 1200.0  # s
_TICK = 0.005  # s


def wait_until(condition: Callable[[], object]) -> None:
    """Return when ``condition()`` holds."""
    end = time.monotonic() + HANG_LIMIT
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(_TICK)


def wait_at_most(seconds: float, condition: Callable[[], object]) -> None:
    """Return after a while, or when ``condition()`` holds: for moments that are drawn, whatever may come of them."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(_TICK)


class Stopwatch:
    """The seconds that a block took."""

    seconds = 0.0

    def __enter__(self) -> "Stopwatch":
        self._start = time.monotonic()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = time.monotonic() - self._start
