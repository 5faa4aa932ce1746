"""Work that a request waits for, and how the worker's thread hands its results to the request's coroutine."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Job(Generic[Result]):
    """Results of one request's work, in order, from the worker's thread to the coroutine that made the job."""

    def __init__(self, *, capacity: float = 1.0) -> None:
        """``capacity`` bounds the size of all results that wait to be taken; the last one may go beyond it."""
        self.is_over = False  # done, failed or canceled: there is no more work to do
        self.on_change: Callable[[], None] = lambda: None  # called when results were taken, and by `cancel`
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Event()
        self._results: deque[tuple[Result | Exception | None, float]] = deque()
        self._waiting = 0.0  # size of what is in _results, or on its way there
        self._capacity = capacity
        self._lock = threading.Lock()

    @property
    def is_full(self) -> bool:
        """Whether the worker has to wait for the client to take what there is."""
        return self._waiting >= self._capacity

    def put(self, result: Result, *, size: float = 0.0) -> None:
        """Hand over a result; called by the worker's thread."""
        with self._lock:
            self._waiting += size
        self._send(result, size)

    def end(self, error: Exception | None = None) -> None:
        """Say that all is done, or what went wrong; called by the worker's thread."""
        self.is_over = True
        self._send(error, 0.0)

    def cancel(self) -> None:
        """Let the worker drop what is left to do; without effect on a job that is over."""
        self.is_over = True
        self.on_change()

    async def take(self) -> Result | None:
        """The next result, or None after the last one.

        Raises:
            Exception: what the work failed with.
        """
        while not self._results:
            self._arrived.clear()
            await self._arrived.wait()
        result, size = self._results.popleft()
        if isinstance(result, Exception):
            raise result
        with self._lock:
            self._waiting -= size
        self.on_change()
        return result

    def _send(self, result: Result | Exception | None, size: float) -> None:
        with suppress(RuntimeError):  # the event loop has ended, and the server with it: nobody waits
            self._loop.call_soon_threadsafe(self._add, result, size)

    def _add(self, result: Result | Exception | None, size: float) -> None:
        self._results.append((result, size))
        self._arrived.set()
