"""Prints the latency of recognition runs as one table in Markdown.

    python -m scripts.recognition_table output/nvlog_*.json

Latency is that of a batch, from samples in memory to text. Speed-up is that of mixed precision over single precision
at the same batch size and duration.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.cli import run
from common.errors import InputError
from common.logger import read_last_run
from common.recognition.command import PERCENTILES

HEADER = (
    "Batch size",
    "Duration (s)",
    "Precision",
    *(f"Latency {percentile}% (ms)" for percentile in PERCENTILES),
    "Avg latency (ms)",
    "Sequences/s",
    "Real-time factor",
    "Speed-up with mixed precision",
)


@dataclass(frozen=True)
class Run:
    """One run's options and figures."""

    options: dict[str, Any]
    figures: dict[str, float]

    @property
    def shape(self) -> tuple[int, float | None]:
        """Batch size and longest duration, s."""
        return self.options["batch_size"], self.options["max_duration"]


def read_run(path: Path) -> Run:
    """The last run that a log holds.

    Raises:
        InputError: the log holds no complete run.
    """
    options, figures = read_last_run(path)
    if "avg_latency" not in figures:
        raise InputError(f"{path}: no averages of a run; was it cut short?")
    return Run(options, figures)


def table(runs: list[Run]) -> list[str]:
    """Lines of the table, one a run."""
    single = {one.shape: one for one in runs if not one.options["amp"]}
    lines = ["|" + "|".join(HEADER) + "|", "|" + "---:|" * len(HEADER)]
    for one in runs:
        plain = single.get(one.shape) if one.options["amp"] else None
        batch_size, duration = one.shape
        cells = (
            str(batch_size),
            "-" if duration is None else f"{duration:g}",
            one.options["precision"],
            *(f"{1000 * one.figures[f'{percentile}%_latency']:.2f}" for percentile in PERCENTILES),
            f"{1000 * one.figures['avg_latency']:.2f}",
            f"{one.figures['avg_sequences/s']:.2f}",
            f"{one.figures['avg_RTF']:.1f}",
            "-" if plain is None else f"{plain.figures['avg_latency'] / one.figures['avg_latency']:.2f}",
        )
        lines.append("|" + "|".join(cells) + "|")
    return lines


def main() -> None:
    """Print the table of the logs given."""
    parser = argparse.ArgumentParser(description="print the latency of recognition runs as one table")
    parser.add_argument("logs", nargs="+", type=Path, help="logs that inference.py --jasper wrote")
    for line in table([read_run(path) for path in parser.parse_args().logs]):
        print(line)


if __name__ == "__main__":
    run(main)
