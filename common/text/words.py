"""stub"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    text: str
    start: int
    end: int
    span: int


@dataclass(frozen=True)
class EncodedText:
    ids: tuple[int, ...]
    words: tuple[Word, ...]
