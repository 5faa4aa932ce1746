"""Prometheus metrics of a server."""

from collections.abc import Callable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

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
        self.seconds = times("speech_request_seconds", "Time of a request")
        self.first_byte = times("speech_first_byte_seconds", "Time to the first byte of the answer")
        queue = Gauge("speech_queue_length", "Requests that wait or are in work", registry=registry)
        queue.set_function(queue_length)
        self.audio = Counter("speech_audio_seconds", "Seconds of sound that were made", registry=registry)
        text = "Utterances, or recordings, that a network took at once"
        self.batch = Histogram("speech_batch_size", text, ("work",), buckets=_SIZES, registry=registry)
        ProcessCollector(registry=registry)  # process_resident_memory_bytes among others
