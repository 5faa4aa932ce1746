"""Prints the throughput of training runs in sequences a second as one table in Markdown.

    python -m scripts.sequences_table 1=output/one_gpu/nvlog.json 8=output/eight_gpus/nvlog.json

Each run is given as its number of processes and its log. The steady state is measured: all updates but those of the
first epoch or, in a run of one epoch, the first tenth of them. Speed-up is that of mixed precision over full precision,
weak scaling that over the run with the fewest processes at the same batch size and precision.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.cli import ArgumentParser, run
from common.errors import InputError
from common.logger import read_log
from scripts.train_table import processes_and_log

HEADER = (
    "Batch size / process",
    "Grad accumulation",
    "Processes",
    "Precision",
    "Sequences/s",
    "Speed-up with mixed precision",
    "Weak scaling",
)


@dataclass(frozen=True)
class Run:
    """One run's options and figure."""

    processes: int
    options: dict[str, Any]
    sequences_per_second: float

    def is_like(self, other: "Run") -> bool:
        """Whether it has the same batches in each process."""
        names = ("batch_size", "gradient_accumulation_steps")
        return all(self.options[name] == other.options[name] for name in names)


def read_run(processes: int, path: Path) -> Run:
    """The last run that a log holds.

    Raises:
        InputError: the log holds no updates.
    """
    options: dict[str, Any] = {}
    updates: list[tuple[int, float]] = []  # epoch and seconds of each
    for record in read_log(path):
        if record["type"] != "LOG":
            continue
        if record["step"] == "PARAMETER":
            options, updates = record["data"], []
        elif "train_took" in record["data"]:
            updates.append((record["step"][0], record["data"]["train_took"]))
    if not updates:
        raise InputError(f"{path}: no updates of training; was the run cut short?")
    first = updates[0][0]
    steady = [seconds for epoch, seconds in updates if epoch > first]
    steady = steady or [seconds for _, seconds in updates[-(-len(updates) // 10) :]] or [updates[0][1]]
    global_batch = processes * options["batch_size"] * options["gradient_accumulation_steps"]
    return Run(processes, options, global_batch * len(steady) / sum(steady))


def table(runs: list[Run]) -> list[str]:
    """Lines of the table, one a run."""
    lines = ["|" + "|".join(HEADER) + "|", "|" + "---:|" * len(HEADER)]
    for one in runs:
        alike = [other for other in runs if other.is_like(one)]
        full = [other for other in alike if other.processes == one.processes and not other.options["amp"]]
        fewest = min(
            (other for other in alike if other.options["amp"] == one.options["amp"]), key=lambda x: x.processes
        )
        cells = (
            str(one.options["batch_size"]),
            str(one.options["gradient_accumulation_steps"]),
            str(one.processes),
            "mixed" if one.options["amp"] else "full",
            f"{one.sequences_per_second:,.2f}",
            f"{one.sequences_per_second / full[0].sequences_per_second:.2f}" if one.options["amp"] and full else "-",
            f"{one.sequences_per_second / fewest.sequences_per_second:.2f}",
        )
        lines.append("|" + "|".join(cells) + "|")
    return lines


def main() -> None:
    """Print the table of the runs given."""
    parser = ArgumentParser(description="print the throughput of training runs as one table", prog="sequences_table")
    parser.add_argument("runs", nargs="+", type=processes_and_log, metavar="processes=log", help="logs of train.py")
    for line in table([read_run(*given) for given in parser.parse_args().runs]):
        print(line)


if __name__ == "__main__":
    run(main)
