"""Praat's TextGrids, long and short: every number and label is where the format wants it, or a line says where not.

Source: the description of TextGrid files in Praat's manual. There any word outside of quotes is a comment; here a word
that the format does not have is refused, as a label that lost its quotes would be silence.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from common.errors import InputError, shown
from common.files import read_text

_LARGEST = 64 << 20  # bytes; an hour of phones has 3 MB
_MOST_TIERS = 1000
_LATEST = 1e6  # s
_ROUNDING = 1e-6  # s; tools round the times of a file
_TOKEN = re.compile(
    r'(?P<text>"(?:[^"\n]|"")*")(?=\s|$)|(?P<flag><\w+>)(?=\s|$)|(?P<word>[^\s"]+)(?=\s|$)|(?P<wrong>\S+)'
)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_WORDS = re.compile(
    r"File|type|Object|class|=|xmin|xmax|tiers\?|size|item|\[\d*\]:?|name|intervals:?|points:?|text|time|number|mark"
)
_COUNT = re.compile(r"\d{1,8}")


@dataclass(frozen=True)
class Interval:
    """A labelled stretch of time."""

    start: float  # s
    end: float  # s
    label: str
    where: str  # "a.TextGrid:17"


@dataclass(frozen=True)
class Tier:
    """The intervals of a tier in order of time; None: it holds points."""

    name: str
    end: float  # s
    intervals: tuple[Interval, ...] | None


def read_tiers(path: Path) -> list[Tier]:
    """Read a TextGrid: UTF-8, or UTF-16 with a byte order mark, as Praat writes it.

    Raises:
        InputError: the file cannot be read, or is not as the format wants it; names the line.
    """
    # Praat writes UTF-16 as soon as a label is not ASCII; others write UTF-8.
    reader = _Reader(path, read_text(path, largest=_LARGEST, kind="TextGrid", utf16=True))
    if reader.text("a file type") not in ("ooTextFile", "ooTextFile short") or reader.text("a class") != "TextGrid":
        raise InputError(f'{path}: no TextGrid; expected File type = "ooTextFile" and Object class = "TextGrid"')
    reader.span()
    if (flag := reader.take("flag", "<exists>")) != "<exists>":
        reader.refuse(f"expected <exists>, got {shown(flag)}")
    tiers = [reader.tier() for _ in range(reader.count(_MOST_TIERS, "tiers"))]
    reader.end()
    return tiers


class _Reader:
    """Takes one value after the other."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._line = 1
        self._tokens = self._values(text)

    def _values(self, text: str) -> Iterator[tuple[str, str, int]]:
        """Kind, value and line of each token that is a value; words that name values are passed over."""
        line, reached = 1, 0
        for found in _TOKEN.finditer(text):
            line += text.count("\n", reached, found.start())
            reached = found.start()
            kind, value = str(found.lastgroup), found[0]
            if kind == "word" and _NUMBER.fullmatch(value):
                kind = "number"
            elif kind == "word" and _WORDS.fullmatch(value):
                continue
            yield kind, value, line

    def refuse(self, message: str) -> None:
        """Raise InputError with the line of the last value."""
        raise InputError(f"{self._path}:{self._line}: not a readable TextGrid: {message}")

    def take(self, kind: str, wanted: str) -> str:
        """The next value, which must be of that kind."""
        found, value, self._line = next(self._tokens, ("", "", self._line))
        if not found:
            self.refuse(f"truncated, expected {wanted}")
        if found != kind:
            reason = {"wrong": "; a label ends with a quote in its line", "word": "; a label is in quotes"}.get(
                found, ""
            )
            self.refuse(f"expected {wanted}, got {shown(value)}{reason}")
        return value

    def text(self, wanted: str) -> str:
        """The next label or name."""
        return self.take("text", wanted)[1:-1].replace('""', '"')

    def number(self, wanted: str) -> float:
        """The next time in seconds."""
        value = float(self.take("number", wanted))
        if not 0 <= value <= _LATEST:
            self.refuse(f"{wanted} {value:g} s, expected 0 to {_LATEST:g}")
        return value

    def count(self, most: int, wanted: str) -> int:
        """How many there are of what follows."""
        value = self.take("number", f"a number of {wanted}")
        if not _COUNT.fullmatch(value) or int(value) > most:
            self.refuse(f"{shown(value)[1:-1]} {wanted}, expected a whole number of at most {most}")
        return int(value)

    def span(self) -> tuple[float, float]:
        """The start and end of something."""
        start, end = self.number("a start"), self.number("an end")
        if not start < end:
            self.refuse(f"it begins at {start:g} s and ends at {end:g}")
        return start, end

    def tier(self) -> Tier:
        """A tier with its objects."""
        kind = self.text('"IntervalTier" or "TextTier"')
        if kind not in ("IntervalTier", "TextTier"):
            self.refuse(f'expected "IntervalTier" or "TextTier", got {shown(kind)}')
        name = self.text("a tier's name")
        _, end = self.span()
        n_objects = self.count(10**7, "objects")
        if kind == "TextTier":
            for _ in range(n_objects):
                self.number("a time")
                self.text("a label")
            return Tier(name, end, None)
        return Tier(name, end, tuple(self._intervals(n_objects, end=end)))

    def _intervals(self, n_objects: int, *, end: float) -> Iterator[Interval]:
        reached = 0.0
        for _ in range(n_objects):
            start, stop = self.span()
            if start < reached - _ROUNDING:
                self.refuse(f"an interval begins at {start:g} s, before the one above ends, at {reached:g}")
            if stop > end + 1e-3:
                self.refuse(f"an interval ends at {stop:g} s, after its tier, at {end:g}")
            start, reached = max(start, reached), max(stop, reached)
            yield Interval(start, reached, self.text("a label"), f"{self._path}:{self._line}")

    def end(self) -> None:
        """Refuse what follows the last tier."""
        for _, value, line in self._tokens:
            self._line = line
            self.refuse(f"{shown(value)} after the last tier")
