"""A table of the figures that runs of train.py and inference.py logged, with a row per log.

Training figures are those of the last epoch; docs/INFERENCE.md explains the inference figures.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from common.errors import InputError
from common.logger import read_last_figures

Row = dict[str, str]  # title of a column -> cell
_FIGURES = re.compile(r"avg_train_took|avg_.*(latency|frames/s|sequences/s)|\d+%_latency|avg_samples/s|avg_RTF")


def markdown(rows: Sequence[Row]) -> list[str]:
    """Return the lines of a Markdown table; all rows have the same columns."""
    header = [[*rows[0]], ["---:"] * len(rows[0])] if rows else []
    return ["|" + "|".join(cells) + "|" for cells in (*header, *(row.values() for row in rows))]


def rows(logs: Sequence[str]) -> list[Row]:
    """Return a row for the last run in each log; raise InputError if it was cut short."""
    found = {}
    for path in map(Path, logs):
        figures = read_last_figures(path)
        name = path.parent.name if path.stem == "nvlog" else path.stem
        found[name] = {key: value for key, value in figures.items() if _FIGURES.fullmatch(key)}
        if not found[name]:
            raise InputError(f"{path}: no averages of a run; was it cut short?")
    columns = dict.fromkeys(key for figures in found.values() for key in figures)
    return [
        {"run": name} | {key: f"{figures[key]:,.6g}" if key in figures else "-" for key in columns}
        for name, figures in found.items()
    ]
