"""Measured quantities, and the cells of tables that show them on pages and on the terminal."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.options import words_of_value


@dataclass(frozen=True)
class Link:
    """Text that leads to an anchor of the page."""

    text: str
    anchor: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, kw_only=True)
class Number(Link):
    """A number as it is shown, and the value that a column is sorted by: None comes last."""

    value: float | None


@dataclass(frozen=True)
class Measure:
    """One measured quantity; its page, its JSON and its terminal table are made from this."""

    key: str  # in the JSON
    name: str
    unit: str = ""
    form: str = ".1f"  # how a value is shown
    meaning: str = ""  # shown on hover and in the glossary
    better: str = ""  # "low" or "high"; empty: no value is worse than another
    scale: float = 1.0  # from the JSON's unit to the one shown: 100 for %
    weight: str = ""  # key of the figure by which a mean over rows weights each of them
    is_main: str = ""  # not empty: it is one of the few that are shown of each row

    def __str__(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def show(self, value: float | None) -> str:
        """A value as text; a hyphen where there is none."""
        return "-" if value is None else format(value * self.scale, self.form)

    def cell(self, value: float | None) -> Number:
        """A value in a table."""
        return Number(self.show(value), value=value)


Cell = str | Measure | Link
Row = tuple[Cell, ...]  # the first cell names the row


def read_table(path: str) -> list[dict[str, str]]:
    """The rows of a tab-separated table, whose ``path`` is from ``common/``, by the headings in its first line."""
    with (Path(__file__).parents[1] / path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def read_measures(path: str) -> dict[str, Measure]:
    """The measures of a table as `read_table` takes it, whose columns are fields of `Measure`, by their keys."""
    rows = ((float(row.pop("scale", "1")), row) for row in read_table(path))
    return {row["key"]: Measure(**row, scale=scale) for scale, row in rows}


def cells(measures: Iterable[Measure], figures: Mapping[str, float | None]) -> tuple[Number, ...]:
    """The figures of one row, by the measures' keys."""
    return tuple(measure.cell(figures.get(measure.key)) for measure in measures)


def setting_rows(settings: Mapping[str, Any]) -> list[Row]:
    """Settings by name, their values in words."""
    words = {"None": "default", "True": "yes", "False": "no"}
    texts = ((name.replace("_", " "), words_of_value(one)) for name, one in settings.items())
    return [(name, words.get(text, text)) for name, text in texts]


def text_table(rows: Sequence[Row]) -> list[str]:
    """Rows as indented lines with aligned columns, those of numbers to the right; the first row may be a heading."""
    columns = []
    for column in zip(*rows):
        texts = [str(cell) for cell in column]
        width, align = max(map(len, texts)), str.rjust if isinstance(column[-1], Number) else str.ljust
        columns.append([align(text, width) for text in texts])
    return [f"  {'  '.join(line)}".rstrip() for line in zip(*columns)]
