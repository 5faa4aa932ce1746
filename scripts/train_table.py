"""Prints the throughput of training runs as one table in Markdown.

    python -m scripts.train_table 1=output/one_gpu/nvlog.json 8=output/eight_gpus/nvlog.json

Each run is given as its number of processes and its log. Frames/s are the mean over its epochs, the first left out
where there are several, as it holds the allocations and choices that are made once.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from common.cli import ArgumentParser, run
from common.errors import InputError
from common.logger import read_log

HEADER = (
    "Batch size / process",
    "Grad accumulation",
    "Processes",
    "Precision",
    "Frames/s",
    "Seconds/epoch",
    "Speed-up with mixed precision",
    "Strong scaling",
)


@dataclass(frozen=True)
class Run:
    """One run's options and figures."""

    processes: int
    options: dict[str, Any]
    frames_per_second: float
    seconds: float  # of an epoch

    @property
    def precision(self) -> str:
        """Full or mixed."""
        return f"mixed ({self.options['amp_dtype']})" if self.options["amp"] else "full"


def read_run(processes: int, path: Path) -> Run:
    """The last run that a log holds.

    Raises:
        InputError: the log holds no finished epoch.
    """
    options: dict[str, Any] = {}
    epochs: list[dict[str, float]] = []
    for record in read_log(path):
        if record["type"] != "LOG":
            continue
        if record["step"] == "PARAMETER":
            options, epochs = record["data"], []
        elif "avg_train_frames/s" in record["data"]:
            epochs.append(record["data"])
    if not epochs:
        raise InputError(f"{path}: no finished epoch of training; was the run cut short?")
    measured = epochs[1:] or epochs
    return Run(
        processes,
        options,
        fmean(epoch["avg_train_frames/s"] for epoch in measured),
        fmean(epoch["avg_train_took"] for epoch in measured),
    )


def table(runs: list[Run]) -> list[str]:
    """Lines of the table, one a run; ratios are to full precision on as many processes, and to the fewest processes."""
    lines = ["|" + "|".join(HEADER) + "|", "|" + "---:|" * len(HEADER)]
    for one in runs:
        full = [other for other in runs if other.processes == one.processes and not other.options["amp"]]
        alike = [other for other in runs if other.options["amp"] == one.options["amp"]]
        fewest = min(alike, key=lambda other: other.processes)
        cells = (
            str(one.options["batch_size"]),
            str(one.options["gradient_accumulation_steps"]),
            str(one.processes),
            one.precision,
            f"{one.frames_per_second:,.0f}",
            f"{one.seconds:.2f}",
            f"{one.frames_per_second / full[0].frames_per_second:.2f}" if one.options["amp"] and full else "-",
            f"{one.frames_per_second / fewest.frames_per_second:.2f}",
        )
        lines.append("|" + "|".join(cells) + "|")
    return lines


def processes_and_log(text: str) -> tuple[int, Path]:
    """An ``argparse`` type: ``8=output/nvlog.json``."""
    processes, equals, path = text.partition("=")
    if not equals or not processes.isdecimal() or int(processes) < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected processes=log, such as 8=output/nvlog.json")
    return int(processes), Path(path)


def main() -> None:
    """Print the table of the runs given."""
    parser = ArgumentParser(description="print the throughput of training runs as one table", prog="train_table")
    parser.add_argument(
        "runs", nargs="+", type=processes_and_log, metavar="processes=log", help="logs that train.py wrote"
    )
    for line in table([read_run(*given) for given in parser.parse_args().runs]):
        print(line)


if __name__ == "__main__":
    run(main)
