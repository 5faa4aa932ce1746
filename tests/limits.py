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
