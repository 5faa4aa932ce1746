"""Measured quantities, and tables that show them on pages and on the terminal."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.options import words_of_value


@dataclass(frozen=True)
class Link:
    """Text that links to an anchor on the page."""

    text: str
    anchor: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, kw_only=True)
class Number(Link):
    """A number as displayed, and the value to sort by; None comes last."""

    value: float | None


@dataclass(frozen=True)
class Measure:
    """A measured quantity, and how to show it on a page, in JSON and on the terminal."""

    key: str  # in the JSON
    name: str
    unit: str = ""
    form: str = ".1f"  # format of a value
    meaning: str = ""  # shown on hover and in the glossary
    better: str = ""  # "low" or "high"; empty: neither
    scale: float = 1.0  # from the JSON's unit to the displayed one: 100 for %
    weight: str = ""  # key of the figure that weights each row in a mean
    is_main: str = ""  # not empty: one of the few that are shown for each row
    figure: str = ""  # key of the figure that it summarizes

    def __str__(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def show(self, value: float | None) -> str:
        """Format a value; None is a hyphen."""
        return "-" if value is None else format(value * self.scale, self.form)

    def cell(self, value: float | None) -> Number:
        """Return a value's table cell."""
        return Number(self.show(value), value=value)


Cell = str | Measure | Link
Row = tuple[Cell, ...]  # the first cell names the row


def read_table(path: str) -> list[dict[str, str]]:
    """Read a tab-separated table, whose ``path`` is relative to ``common/``; each row maps headings to values."""
    with (Path(__file__).parents[1] / path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def read_measures(path: str) -> dict[str, Measure]:
    """Read measures from a table (see `read_table`) whose columns are fields of `Measure`; return them by key."""
    rows = ((float(row.pop("scale", "1")), row) for row in read_table(path))
    return {row["key"]: Measure(**row, scale=scale) for scale, row in rows}


def cells(measures: Iterable[Measure], figures: Mapping[str, float | None]) -> tuple[Number, ...]:
    """Return a row's cells for ``measures``; ``figures`` are by the measures' keys."""
    return tuple(measure.cell(figures.get(measure.key)) for measure in measures)


def setting_rows(settings: Mapping[str, Any]) -> list[Row]:
    """Return rows of settings, with their values in words."""
    words = {"None": "default", "True": "yes", "False": "no"}
    texts = ((name.replace("_", " "), words_of_value(one)) for name, one in settings.items())
    return [(name, words.get(text, text)) for name, text in texts]


def text_table(rows: Sequence[Row]) -> list[str]:
    """Format rows as indented lines with aligned columns, numbers to the right; the first row may be a heading."""
    columns = []
    for column in zip(*rows):
        texts = [str(cell) for cell in column]
        width, align = max(map(len, texts)), str.rjust if isinstance(column[-1], Number) else str.ljust
        columns.append([align(text, width) for text in texts])
    return [f"  {'  '.join(line)}".rstrip() for line in zip(*columns)]
