"""Prints the figures of inference runs as one table in Markdown.

    python -m scripts.inference_table output/nvlog_infer_*.json

Latency is from the symbols to the sound; to the mels in a run that made no sound, and from them in one that was given
mels. Speed-up is that of mixed precision over single precision at the same batch size: of the latency, and of the
vocoder's frames a second.
"""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.cli import run
from common.errors import InputError
from common.logger import read_last_run

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
    "Vocoder's frames/s",
    "Vocoder's latency (s)",
    "Vocoder's RTF",
    "Vocoder's speed-up",
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
    def vocoder(self) -> str | None:
        """The vocoder's name in the figures; None in a run that made no sound."""
        names = [re.fullmatch(r"avg_(.+)_samples/s", key) for key in self.figures]
        return next((found.group(1) for found in names if found), None)

    @property
    def stage(self) -> str:
        """What stands before ``latency`` in the names of the figures of all that ran."""
        if "avg_latency" in self.figures:
            return ""
        return f"{self.vocoder}_" if self.vocoder else "generator_"

    @property
    def latency(self) -> float:
        """Mean seconds of a batch."""
        return self.figures[f"avg_{self.stage}latency"]

    def of_vocoder(self, figure: str) -> float | None:
        """One of the vocoder's averages: ``frames/s``, ``latency``, ``RTF``."""
        return self.figures.get(f"avg_{self.vocoder}_{figure}")


def read_run(path: Path) -> Run:
    """The last run that a log holds.

    Raises:
        InputError: the log holds no complete run.
    """
    options, figures = read_last_run(path)
    if not any(name.endswith("latency") and name.startswith("avg_") for name in figures):
        raise InputError(f"{path}: no averages of a run; was it cut short?")
    return Run(options, figures)


def table(runs: list[Run]) -> list[str]:
    """Lines of the table, one a run."""
    single = {run.batch_size: run for run in runs if not run.options["amp"]}
    lines = ["|" + "|".join(HEADER) + "|", "|" + "---:|" * len(HEADER)]
    for one in runs:
        plain = single.get(one.batch_size) if one.options["amp"] else None
        figures, stage = one.figures, one.stage
        samples = figures.get("avg_samples/s", one.of_vocoder("samples/s"))
        frames = one.of_vocoder("frames/s")
        cells = (
            str(one.batch_size),
            one.precision,
            f"{one.latency:.3f}",
            *(f"{figures[f'{interval}_{stage}latency']:.3f}" for interval in INTERVALS),
            _cell(figures.get("avg_generator_frames/s"), ",.0f"),
            _cell(samples, ",.0f"),
            _cell(plain and plain.latency / one.latency, ".2f"),
            f"{figures[f'avg_{stage}RTF']:.2f}",
            _cell(frames, ",.0f"),
            _cell(one.of_vocoder("latency"), ".3f"),
            _cell(one.of_vocoder("RTF"), ".2f"),
            _cell(plain and frames and frames / plain.of_vocoder("frames/s"), ".2f"),
        )
        lines.append("|" + "|".join(cells) + "|")
    return lines


def _cell(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def main() -> None:
    """Print the table of the logs given."""
    parser = argparse.ArgumentParser(description="print the figures of inference runs as one table")
    parser.add_argument("logs", nargs="+", type=Path, help="logs that inference.py wrote")
    for line in table([read_run(path) for path in parser.parse_args().logs]):
        print(line)


if __name__ == "__main__":
    run(main)
