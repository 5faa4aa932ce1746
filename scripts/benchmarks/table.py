"""Prints the figures of runs as one table in Markdown, a line for each run.

    python -m scripts.benchmarks.table training 1=output/one_gpu/nvlog.json 8=output/eight_gpus/nvlog.json
    python -m scripts.benchmarks.table sequences 1=output/one_gpu/nvlog.json 8=output/eight_gpus/nvlog.json
    python -m scripts.benchmarks.table inference output/nvlog_infer_*.json
    python -m scripts.benchmarks.table recognition output/nvlog_*.json

``training`` gives frames/s, the mean over a run's epochs without the first, which holds the allocations and choices
that are made once. ``sequences`` gives sequences/s in the steady state: all updates but those of the first epoch or, in
a run of one epoch, its first tenth. Both take each run as its number of processes and its log; scaling is relative to
the run with the fewest processes. Latency of ``inference`` is from the symbols to the sound; to the mels in a run that
made no sound, and from them in one that was given mels. Latency of ``recognition`` is that of a batch, from samples in
memory to text. Speed-up is that of mixed precision over the same run in full precision.
"""

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from common.cli import ArgumentParser, run
from common.errors import InputError
from common.logger import read_last_run, read_log
from common.recognition.command import PERCENTILES

SPEED_UP = "Speed-up with mixed precision"
Row = dict[str, str]  # title of a column -> cell


@dataclass(frozen=True)
class Run:
    """One run's options and figures."""

    options: dict[str, Any]
    figures: dict[str, float]
    processes: int = 1

    @property
    def vocoder(self) -> str | None:
        """The vocoder's name in the figures; None in a run that made no sound."""
        names = [re.fullmatch(r"avg_(.+)_samples/s", key) for key in self.figures]
        return next((found.group(1) for found in names if found), None)

    @property
    def stage(self) -> str:
        """What stands before ``latency`` in the names of the figures of all that ran."""
        return "" if "avg_latency" in self.figures else f"{self.vocoder or 'generator'}_"

    @property
    def latency(self) -> float:
        """Mean seconds of a batch."""
        return self.figures[f"avg_{self.stage}latency"]

    def of_vocoder(self, figure: str) -> float | None:
        """One of the vocoder's averages: ``frames/s``, ``latency``, ``RTF``."""
        return self.figures.get(f"avg_{self.vocoder}_{figure}")

    def is_like(self, other: "Run", *names: str) -> bool:
        """Whether those options are the same in both."""
        return all(self.options.get(name) == other.options.get(name) for name in names)


def read_training(path: Path, processes: int) -> Run:
    """The last run that a log holds, measured by its epochs; raises InputError if none is finished."""
    options, records = _last_run(path)
    epochs = [data for _, data in records if "avg_train_frames/s" in data]
    if not epochs:
        raise InputError(f"{path}: no finished epoch of training; was the run cut short?")
    measured = epochs[1:] or epochs
    figures = {name: fmean(epoch[f"avg_train_{name}"] for epoch in measured) for name in ("frames/s", "took")}
    return Run(options, figures, processes)


def read_sequences(path: Path, processes: int) -> Run:
    """The last run that a log holds, measured by its updates; raises InputError if there are none."""
    options, records = _last_run(path)
    updates = [(step[0], data["train_took"]) for step, data in records if "train_took" in data]
    if not updates:
        raise InputError(f"{path}: no updates of training; was the run cut short?")
    steady = [seconds for epoch, seconds in updates if epoch > updates[0][0]]
    steady = steady or [seconds for _, seconds in updates[-(-len(updates) // 10) :]] or [updates[0][1]]
    global_batch = processes * options["batch_size"] * options["gradient_accumulation_steps"]
    return Run(options, {"sequences/s": global_batch * len(steady) / sum(steady)}, processes)


def read_inference(path: Path) -> Run:
    """The last run of inference or recognition that a log holds; raises InputError if it is not complete."""
    options, figures = read_last_run(path)
    if not any(name.endswith("latency") and name.startswith("avg_") for name in figures):
        raise InputError(f"{path}: no averages of a run; was it cut short?")
    return Run(options, figures)


def _last_run(path: Path) -> tuple[dict[str, Any], list[tuple[Any, dict[str, float]]]]:
    """Options, then step and figures of each record."""
    options: dict[str, Any] = {}
    records: list[tuple[Any, dict[str, float]]] = []
    for record in read_log(path):
        if record["type"] != "LOG":
            continue
        if record["step"] == "PARAMETER":
            options, records = record["data"], []
        else:
            records.append((record["step"], record["data"]))
    return options, records


def _ratios(one: Run, alike: list[Run], figure: str) -> tuple[str, str]:
    """The speed-up and the scaling of a run relative to runs that are comparable."""
    full = [other for other in alike if other.processes == one.processes and not other.options["amp"]]
    fewest = min((other for other in alike if other.is_like(one, "amp")), key=lambda other: other.processes)
    value = one.figures[figure]
    speed_up = f"{value / full[0].figures[figure]:.2f}" if one.options["amp"] and full else "-"
    return speed_up, f"{value / fewest.figures[figure]:.2f}"


def _training_options(one: Run, mixed: str) -> Row:
    return {
        "Batch size / process": str(one.options["batch_size"]),
        "Grad accumulation": str(one.options["gradient_accumulation_steps"]),
        "Processes": str(one.processes),
        "Precision": mixed if one.options["amp"] else "full",
    }


def training_row(one: Run, runs: list[Run]) -> Row:
    """The table row of a training run measured in frames/s."""
    speed_up, scaling = _ratios(one, runs, "frames/s")
    return _training_options(one, f"mixed ({one.options['amp_dtype']})") | {
        "Frames/s": f"{one.figures['frames/s']:,.0f}",
        "Seconds/epoch": f"{one.figures['took']:.2f}",
        SPEED_UP: speed_up,
        "Strong scaling": scaling,
    }


def sequences_row(one: Run, runs: list[Run]) -> Row:
    """The table row of a training run measured in sequences/s, compared with runs of the same batch per process."""
    alike = [other for other in runs if other.is_like(one, "batch_size", "gradient_accumulation_steps")]
    speed_up, scaling = _ratios(one, alike, "sequences/s")
    sequences = f"{one.figures['sequences/s']:,.2f}"
    return _training_options(one, "mixed") | {"Sequences/s": sequences, SPEED_UP: speed_up, "Weak scaling": scaling}


def inference_row(one: Run, runs: list[Run]) -> Row:
    """The table row of a synthesis run."""
    plain = _in_full_precision(one, runs, "batch_size")
    figures, stage, frames = one.figures, one.stage, one.of_vocoder("frames/s")
    tolerance = {f"Latency tolerance interval {p}% (s)": f"{figures[f'{p}%_{stage}latency']:.3f}" for p in PERCENTILES}
    return {
        "Batch size": str(one.options["batch_size"]),
        "Precision": one.options["precision"],
        "Avg latency (s)": f"{one.latency:.3f}",
        **tolerance,
        "Frames/s of the text-to-mel model": cell(figures.get("avg_generator_frames/s"), ",.0f"),
        "Throughput (samples/s)": cell(figures.get("avg_samples/s", one.of_vocoder("samples/s")), ",.0f"),
        SPEED_UP: cell(plain and plain.latency / one.latency, ".2f"),
        "x real time": f"{figures[f'avg_{stage}RTF']:.2f}",
        "Vocoder's frames/s": cell(frames, ",.0f"),
        "Vocoder's latency (s)": cell(one.of_vocoder("latency"), ".3f"),
        "Vocoder x real time": cell(one.of_vocoder("RTF"), ".2f"),
        "Vocoder's speed-up": cell(plain and frames and frames / plain.of_vocoder("frames/s"), ".2f"),
    }


def recognition_row(one: Run, runs: list[Run]) -> Row:
    """The table row of a recognition run."""
    plain = _in_full_precision(one, runs, "batch_size", "max_duration")
    return {
        "Batch size": str(one.options["batch_size"]),
        "Duration (s)": cell(one.options["max_duration"], "g"),
        "Precision": one.options["precision"],
        **{f"Latency {p}% (ms)": f"{1000 * one.figures[f'{p}%_latency']:.2f}" for p in PERCENTILES},
        "Avg latency (ms)": f"{1000 * one.latency:.2f}",
        "Sequences/s": f"{one.figures['avg_sequences/s']:.2f}",
        "x real time": f"{one.figures['avg_RTF']:.1f}",
        SPEED_UP: cell(plain and plain.latency / one.latency, ".2f"),
    }


def _in_full_precision(one: Run, runs: list[Run], *names: str) -> Run | None:
    """For a run in mixed precision the last one in full precision with the same options of those names."""
    found = [other for other in runs if not other.options["amp"] and other.is_like(one, *names)]
    return found[-1] if found and one.options["amp"] else None


def cell(value: float | None, form: str) -> str:
    """A number, or a dash where there is none."""
    return "-" if value is None else format(value, form)


def markdown(rows: list[Row]) -> list[str]:
    """Lines of a table whose rows have the same columns."""
    header = [[*rows[0]], ["---:"] * len(rows[0])] if rows else []
    return ["|" + "|".join(cells) + "|" for cells in (*header, *(row.values() for row in rows))]


class Table:
    """A table that is printed row by row, as its figures are measured."""

    def __init__(self) -> None:
        self._is_begun = False

    def add(self, row: Row) -> None:
        """Print a row, the first one below the titles of its columns."""
        lines = markdown([row])
        print(*(lines[-1:] if self._is_begun else lines), sep="\n", flush=True)
        self._is_begun = True


KINDS: dict[str, tuple[Callable[..., Run], Callable[[Run, list[Run]], Row]]] = {  # how a log is read and shown
    "training": (read_training, training_row),
    "sequences": (read_sequences, sequences_row),
    "inference": (read_inference, inference_row),
    "recognition": (read_inference, recognition_row),
}
OF_PROCESSES = ("training", "sequences")  # kinds whose runs are given as processes=log


def processes_and_log(text: str) -> tuple[Path, int]:
    """An ``argparse`` type: ``8=output/nvlog.json``."""
    processes, equals, path = text.partition("=")
    if not equals or not processes.isdecimal() or int(processes) < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected processes=log, such as 8=output/nvlog.json")
    return Path(path), int(processes)


def main() -> None:
    """Print the table of the runs given."""
    parser = ArgumentParser(description="print the figures of runs as one table", prog="table")
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="|".join(KINDS))
    for kind in KINDS:
        form, wanted = (processes_and_log, "processes=log") if kind in OF_PROCESSES else (Path, "log")
        own = kinds.add_parser(kind)
        own.add_argument("runs", nargs="+", type=form, metavar=wanted, help="logs that train.py or inference.py wrote")
    args = parser.parse_args()
    read, row = KINDS[args.kind]
    runs = [read(*given) if args.kind in OF_PROCESSES else read(given) for given in args.runs]
    print(*markdown([row(one, runs) for one in runs]), sep="\n")


if __name__ == "__main__":
    run(main)
