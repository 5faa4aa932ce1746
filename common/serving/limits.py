"""What a server lets its clients ask for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of requests; each has an option of ``serve.py`` of its name."""

    max_queue: int = 256  # requests at once, those that wait and those in work
    max_characters: int = 4096  # of a text, markup included, or symbols of a prosody table
    max_body: int = 10 * 2**20  # bytes of a request
    deadline: float = 120.0  # s from the first byte of a request to the last of its answer
    max_audio_seconds: float = 60.0  # s of a recording to transcribe
    batch_size: int = 16  # utterances, or recordings, that the networks take at once
