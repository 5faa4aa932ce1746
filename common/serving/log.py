"""The server's log, one line per request, and its Prometheus metrics."""

import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

logger = logging.getLogger("serve")


@dataclass
class RequestRecord:
    """What one request asked for and how it was answered."""

    what: str  # method and path, or the protocol and its event
    endpoint: str  # label in the metrics
    status: int = 0  # HTTP status; 0: the answer hasn't started
    characters: int | None = None  # in the text; None without a text
    sound: float | None = None  # s sent or transcribed
    first_byte: float | None = None  # s to the first byte of the answer's body, or to the first sound
    seconds: float = 0.0  # total
    error: str | None = None  # what the client was told
    stop_work: Callable[[], None] = lambda: None  # called when the request ends, however that happens
    _began: float = field(default_factory=time.monotonic, repr=False)

    def begin_answer(self) -> None:
        """Record the time of the first byte."""
        self.first_byte = self.first_byte or time.monotonic() - self._began

    def finish(self) -> None:
        """End the request's work, and log its line."""
        self.stop_work()
        self.seconds = time.monotonic() - self._began
        parts = [f"{self.what} {self.status}"]
        if self.characters is not None:
            parts.append(f"{self.characters} characters")
        if self.sound is not None:
            parts.append(f"{self.sound:.2f} s of sound")
        if self.first_byte is not None:
            parts.append(f"first byte after {1000 * self.first_byte:.0f} ms")
        parts.append(f"{1000 * self.seconds:.0f} ms")
        logger.info("%s", ", ".join(parts) + (f": {self.error}" if self.error else ""))


def start_logging(form: str) -> None:
    """Write warnings to stderr, and a line for each request unless ``form`` is "off"."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logger.setLevel(logging.WARNING if form == "off" else logging.INFO)


_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Metrics in a registry of their own."""

    def __init__(self, *, queue_length: Callable[[], int]) -> None:
        """``queue_length()`` is called when the metrics are read."""
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "speech_requests", "Requests by path and status (499: hung up)", ("endpoint", "status"), registry=registry
        )
        times = partial(Histogram, labelnames=("endpoint",), buckets=_SECONDS, registry=registry)
        self.seconds = times("speech_request_seconds", "Duration of a request")
        self.first_byte = times("speech_first_byte_seconds", "Time to the first byte of the answer")
        queue = Gauge("speech_queue_length", "Requests waiting or in progress", registry=registry)
        queue.set_function(queue_length)
        self.audio = Counter("speech_audio_seconds", "Seconds of sound produced", registry=registry)
        text = "Utterances or recordings in a batch"
        self.batch = Histogram("speech_batch_size", text, ("work",), buckets=_SIZES, registry=registry)
        ProcessCollector(registry=registry)  # process_resident_memory_bytes among others
