"""Prints the figures of inference runs as one table in Markdown.

    python -m scripts.inference_table output/nvlog_infer_*.json

Latency is from the symbols to the sound, or to the mels in a run that made no sound. Speed-up is that of mixed
precision over single precision at the same batch size.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.cli import run
from common.errors import InputError
from common.logger import read_log

INTERVALS = ("90%", "95%", "99%")
HEADER = (
    "Batch size",
    "Precision",
    "Avg latency (s)",
    *(f"Latency tolerance interval {interval} (s)" for interval in INTERVALS),
    "Frames/s of the text-to-mel model",
    "Throughput (samples/s)",
    "Speed-up with mixed precision",
    "Avg RTF",
)


@dataclass(frozen=True)
class Run:
    """One run's options and figures."""

    options: dict[str, Any]
    figures: dict[str, float]

    @property
    def batch_size(self) -> int:
        """Phrases at once."""
        return self.options["batch_size"]

    @property
    def precision(self) -> str:
        """The networks' type of numbers."""
        return self.options["precision"]

    @property
    def stage(self) -> str:
        """What stands before ``latency`` in the names of the figures of all that ran."""
        return "" if "avg_latency" in self.figures else "generator_"


def read_run(path: Path) -> Run:
    """The last run that a log holds.

    Raises:
        InputError: the log holds no complete run of a text-to-mel model.
    """
    options: dict[str, Any] = {}
    figures: dict[str, float] = {}
    for record in read_log(path):
        if record["type"] != "LOG":
            continue
        if record["step"] == "PARAMETER":
            options, figures = record["data"], {}
        else:
            figures |= record["data"]
    if "avg_generator_latency" not in figures:
        raise InputError(f"{path}: no averages of a text-to-mel model; was the run cut short?")
    return Run(options, figures)


def table(runs: list[Run]) -> list[str]:
    """Lines of the table, one a run."""
    single = {run.batch_size: run.figures[f"avg_{run.stage}latency"] for run in runs if not run.options["amp"]}
    lines = ["|" + "|".join(HEADER) + "|", "|" + "---:|" * len(HEADER)]
    for one in runs:
        latency = one.figures[f"avg_{one.stage}latency"]
        samples = one.figures.get("avg_samples/s")
        has_speed_up = one.options["amp"] and one.batch_size in single
        cells = (
            str(one.batch_size),
            one.precision,
            f"{latency:.3f}",
            *(f"{one.figures[f'{interval}_{one.stage}latency']:.3f}" for interval in INTERVALS),
            f"{one.figures['avg_generator_frames/s']:,.0f}",
            "-" if samples is None else f"{samples:,.0f}",
            f"{single[one.batch_size] / latency:.2f}" if has_speed_up else "-",
            f"{one.figures[f'avg_{one.stage}RTF']:.2f}",
        )
        lines.append("|" + "|".join(cells) + "|")
    return lines


def main() -> None:
    """Print the table of the logs given."""
    parser = argparse.ArgumentParser(description="print the figures of inference runs as one table")
    parser.add_argument("logs", nargs="+", type=Path, help="logs that inference.py wrote")
    for line in table([read_run(path) for path in parser.parse_args().logs]):
        print(line)


if __name__ == "__main__":
    run(main)
