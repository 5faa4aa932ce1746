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

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from common.cli import ArgumentParser, run
from common.errors import InputError, OptionError
from common.logger import read_last_run, read_log
from common.recognition.command import PERCENTILES
from scripts.benchmarks.measuring import Row, cell, markdown

SPEED_UP = "Speed-up with mixed precision"


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

    def in_full_precision(self, runs: list["Run"], *names: str) -> "Run | None":
        """For a run in mixed precision the last one in full precision with the same options of those ``names``."""
        found = [one for one in runs if not one.options["amp"] and one.is_like(self, *names)]
        return found[-1] if found and self.options["amp"] else None

    def is_like(self, other: "Run", *names: str) -> bool:
        """Whether both have the same options of those ``names``."""
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


def read_inference(path: Path, processes: int = 1) -> Run:
    """The last run of inference or recognition that a log holds; raises InputError if it is not complete."""
    options, figures = read_last_run(path)
    if not any(name.endswith("latency") and name.startswith("avg_") for name in figures):
        raise InputError(f"{path}: no averages of a run; was it cut short?")
    return Run(options, figures, processes)


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


def _training_row(one: Run, alike: list[Run], *, mixed: str, figure: str, further: Row, scaling: str) -> Row:
    """The row of a run of training, with speed-up and scaling relative to the runs that are ``alike``."""
    full = [other for other in alike if other.processes == one.processes and not other.options["amp"]]
    fewest = min((other for other in alike if other.is_like(one, "amp")), key=lambda other: other.processes)
    value = one.figures[figure]
    return {
        "Batch size / process": str(one.options["batch_size"]),
        "Grad accumulation": str(one.options["gradient_accumulation_steps"]),
        "Processes": str(one.processes),
        "Precision": mixed if one.options["amp"] else "full",
        **further,
        SPEED_UP: f"{value / full[0].figures[figure]:.2f}" if one.options["amp"] and full else "-",
        scaling: f"{value / fewest.figures[figure]:.2f}",
    }


def training_row(one: Run, runs: list[Run]) -> Row:
    """The table row of a training run measured in frames/s."""
    figures, mixed = one.figures, f"mixed ({one.options['amp_dtype']})"
    further = {"Frames/s": f"{figures['frames/s']:,.0f}", "Seconds/epoch": f"{figures['took']:.2f}"}
    return _training_row(one, runs, mixed=mixed, figure="frames/s", further=further, scaling="Strong scaling")


def sequences_row(one: Run, runs: list[Run]) -> Row:
    """The table row of a training run measured in sequences/s, compared with runs of the same batch per process."""
    alike = [other for other in runs if other.is_like(one, "batch_size", "gradient_accumulation_steps")]
    further = {"Sequences/s": f"{one.figures['sequences/s']:,.2f}"}
    return _training_row(one, alike, mixed="mixed", figure="sequences/s", further=further, scaling="Weak scaling")


def inference_row(one: Run, runs: list[Run]) -> Row:
    """The table row of a synthesis run."""
    plain = one.in_full_precision(runs, "batch_size")
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
    plain = one.in_full_precision(runs, "batch_size", "max_duration")
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


KINDS: dict[str, tuple[Callable[..., Run], Callable[[Run, list[Run]], Row]]] = {  # how a log is read and shown
    "training": (read_training, training_row),
    "sequences": (read_sequences, sequences_row),
    "inference": (read_inference, inference_row),
    "recognition": (read_inference, recognition_row),
}


def read_run(kind: str, word: str) -> Run:
    """A run of one of `KINDS`, given as its log, or of training as its processes and its log."""
    processes, equals, path = word.partition("=") if kind in ("training", "sequences") else ("1", "=", word)
    if not equals or not processes.isdecimal() or int(processes) < 1:
        raise OptionError(f"{word}: expected processes=log, such as 8=output/nvlog.json")
    return KINDS[kind][0](Path(path), int(processes))


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table of the runs given."""
    parser = ArgumentParser(description="print the figures of runs as one table", prog="table")
    parser.add_argument("kind", choices=tuple(KINDS), help="what was measured")
    parser.add_argument("runs", nargs="+", help="logs that train.py or inference.py wrote; of training processes=log")
    args = parser.parse_args(argv)
    runs = [read_run(args.kind, word) for word in args.runs]
    print(*markdown([KINDS[args.kind][1](one, runs) for one in runs]), sep="\n")


if __name__ == "__main__":
    run(main)
