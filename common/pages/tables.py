"""Measured quantities, and the cells of tables that show them on pages and on the terminal."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Link:
    """Text that leads to an anchor of the page, with a hint that is shown on hover."""

    text: str
    anchor: str = ""
    hint: str = ""

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
    form: str | Callable[[float], str] = ".1f"  # how a value is shown
    meaning: str = ""  # shown on hover and in the glossary
    better: str = ""  # "low" or "high"; empty: no value is worse than another
    scale: float = 1.0  # from the JSON's unit to the one shown: 100 for %
    needs: str = ""  # without which it cannot be measured
    weight: str = ""  # key of the figure by which a mean over rows weights each of them

    def __str__(self) -> str:
        return f"{self.name} ({self.unit})" if self.unit else self.name

    def show(self, value: float | None) -> str:
        """A value as text; a hyphen where there is none."""
        if value is None:
            return "-"
        return self.form(value) if callable(self.form) else format(value * self.scale, self.form)

    def cell(self, value: float | None, anchor: str = "", hint: str = "") -> Number:
        """A value in a table."""
        return Number(self.show(value), anchor, hint, value=value)


def read_table(path: str) -> list[dict[str, str]]:
    """The rows of a tab-separated table, whose ``path`` is from ``common/``, by the headings in its first line."""
    with (Path(__file__).parents[1] / path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def read_measures(path: str) -> dict[str, Measure]:
    """The measures of a table as `read_table` takes it, whose columns are fields of `Measure`, by their keys."""
    rows = ((float(row.pop("scale", "1")), row) for row in read_table(path))
    return {row["key"]: Measure(**row, scale=scale) for scale, row in rows}


Cell = str | Measure | Link | tuple[Link, ...]
Row = tuple[Cell, ...]  # the first cell names the row


def cells(measures: Iterable[Measure], figures: Mapping[str, float | None]) -> tuple[Number, ...]:
    """The figures of one row, by the measures' keys."""
    return tuple(measure.cell(figures.get(measure.key)) for measure in measures)


def known(figures: Mapping[str, float | None]) -> dict[str, float]:
    """The figures that have a value; NaN is none."""
    return {key: value for key, value in figures.items() if value is not None and value == value}


def text_line(row: Iterable[Cell], widths: Sequence[int], *, left: int = 1) -> str:
    """A row in columns of these widths for the terminal; the first ``left`` are aligned to the left."""
    aligned = (f"{cell!s:{'<' if i < left else '>'}{width}}" for i, (cell, width) in enumerate(zip(row, widths)))
    return "  ".join(aligned)


def text_table(rows: Sequence[Row], *, left: int = 1) -> list[str]:
    """Rows as indented lines with aligned columns; the first ``left`` and the last are aligned to the left."""
    widths = [max(len(str(cell)) for cell in column) for column in zip(*rows)][:-1]
    return [f"  {text_line(row, widths, left=left)}  {row[-1]!s}".rstrip() for row in rows]
