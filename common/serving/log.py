"""The server's log: a line for each request, and warnings, as text or as JSON objects."""

import json
import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

logger = logging.getLogger("serve")


@dataclass
class RequestRecord:
    """What one request asked for, and how it was answered."""

    what: str  # method and path, or the protocol and its event
    endpoint: str  # in the metrics
    status: int = 0  # as of HTTP; 0: the answer has not begun
    characters: int | None = None  # of the text; None: there is none
    sound: float | None = None  # s that were sent or transcribed
    first_byte: float | None = None  # s to the first byte of the answer's body, or to the first sound
    seconds: float = 0.0  # in all
    error: str | None = None  # what the client was told
    stop_work: Callable[[], None] = lambda: None  # called when the request ends, however that happens
    _began: float = field(default_factory=time.monotonic, repr=False)

    def begin_answer(self) -> None:
        """Note the time of the first byte; without effect for those after it."""
        if self.first_byte is None:
            self.first_byte = time.monotonic() - self._began

    def finish(self) -> None:
        """End the request's work, and write its line."""
        self.stop_work()
        self.seconds = time.monotonic() - self._began
        logger.info("%s", self.line, extra={"request": self})

    @property
    def line(self) -> str:
        """The record in words."""
        parts = [f"{self.what} {self.status}"]
        if self.characters is not None:
            parts.append(f"{self.characters} characters")
        if self.sound is not None:
            parts.append(f"{self.sound:.2f} s of sound")
        if self.first_byte is not None:
            parts.append(f"first byte after {1000 * self.first_byte:.0f} ms")
        parts.append(f"{1000 * self.seconds:.0f} ms")
        return ", ".join(parts) + (f": {self.error}" if self.error else "")

    @property
    def fields(self) -> dict[str, Any]:
        """The record for JSON, with units in the names."""
        found = {
            "request": self.what,
            "status": self.status,
            "characters": self.characters,
            "sound_s": None if self.sound is None else round(self.sound, 3),
            "first_byte_ms": None if self.first_byte is None else round(1000 * self.first_byte, 1),
            "total_ms": round(1000 * self.seconds, 1),
            "error": self.error,
        }
        return {name: value for name, value in found.items() if value is not None}


class _TextFormatter(logging.Formatter):
    """Puts the time before the lines of requests; other messages stand as they are."""

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        return f"{self.formatTime(record, '%Y-%m-%d %H:%M:%S')} {line}" if hasattr(record, "request") else line


class _JsonFormatter(logging.Formatter):
    """Makes one JSON object a line: time, level, and a request's fields or a message."""

    def format(self, record: logging.LogRecord) -> str:
        made = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{record.msecs:03.0f}Z"
        request: RequestRecord | None = getattr(record, "request", None)
        fields = {"message": super().format(record)} if request is None else request.fields
        return json.dumps({"time": made, "level": record.levelname.lower(), **fields}, ensure_ascii=False)


def start_logging(form: str) -> None:
    """Write warnings, and a line for each request, to stderr as ``form`` says: text or json; off: warnings alone."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logger.setLevel(logging.WARNING if form == "off" else logging.INFO)
