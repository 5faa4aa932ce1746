"""Speech to text as a command: ``inference.py`` with the checkpoint of a recognizer."""

from collections.abc import Sequence


def recognize(argv: Sequence[str] | None) -> int:
    """Transcribe recordings."""
    raise NotImplementedError("the recognition room provides it")
