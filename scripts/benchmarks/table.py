"""The table that all benchmarks print: of what they measured themselves, or a line for each log that a run has left.

    python -m scripts.benchmarks.table 1=output/one_gpu/nvlog.json 8=output/eight_gpus/nvlog.json

A run of training is given as its number of processes and its log; its first epoch, or its first update if there is no
other epoch, is left out. Scaling is relative to the run with the fewest processes of the same batch size. Latency of
inference is from the symbols to the sound, or to the mels without sound; latency of recognition is that of a batch.
"""

import platform
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from common.cli import ArgumentParser, run
from common.errors import InputError
from common.logger import read_last_run, read_log
from common.recognition.options import PERCENTILES

Row = dict[str, str]  # title of a column -> cell
Run = dict[str, Any]  # options and figures of one run; "speed" is what ratios are of
COLUMNS = (  # title, name in a run and format; those that no run has are left out
    ("Batch size", "batch_size", ""),
    ("Grad accumulation", "gradient_accumulation_steps", ""),
    ("Processes", "processes", ""),
    ("Duration (s)", "max_duration", "g"),
    ("Precision", "precision", ""),
    ("Avg latency (s)", "avg_latency", ".6f"),
    ("First sound (s)", "first_sound", ".5f"),
    *((f"Latency tolerance interval {percent}% (s)", f"{percent}%_latency", ".6f") for percent in PERCENTILES),
    ("Frames/s", "train_frames/s", ",.0f"),
    ("Frames/s of the text-to-mel model", "avg_generator_frames/s", ",.0f"),
    ("Sequences/s", "avg_sequences/s", ",.2f"),
    ("Seconds/update", "train_took", ".3f"),
    ("Throughput (samples/s)", "avg_samples/s", ",.0f"),
    ("Speed-up with mixed precision", "speed_up", ".2f"),
    ("Scaling", "scaling", ".2f"),
    ("x real time", "avg_RTF", ".2f"),
    ("Vocoder's frames/s", "avg_vocoder_frames/s", ",.0f"),
    ("Vocoder's latency (s)", "avg_vocoder_latency", ".6f"),
    ("Vocoder x real time", "avg_vocoder_RTF", ".2f"),
)
_SAME = ("batch_size", "gradient_accumulation_steps", "processes", "max_duration")  # in runs that speed-up compares


def machine(*, cuda: bool) -> str:
    """The name of the GPU, or of the processor with PyTorch's threads."""
    import torch  # here, as it takes seconds to load

    if cuda:
        return torch.cuda.get_device_name()
    info = Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*: (.+)", info.read_text(encoding="utf-8") if info.is_file() else "", re.MULTILINE)
    return f"{found[1] if found else platform.machine()}, {torch.get_num_threads()} threads"


def markdown(rows: Sequence[Row]) -> list[str]:
    """Lines of a table whose rows have the same columns."""
    header = [[*rows[0]], ["---:"] * len(rows[0])] if rows else []
    return ["|" + "|".join(cells) + "|" for cells in (*header, *(row.values() for row in rows))]


def read_training(path: Path, processes: int) -> Run:
    """The last run that a log holds; raises InputError if it was cut short."""
    options: dict[str, Any] = {}
    updates: list[tuple[int, dict[str, float]]] = []  # epoch and figures
    for record in read_log(path):
        data = record.get("data", {})
        if record.get("step") == "PARAMETER":
            options, updates = data, []
        elif "train_took" in data:
            updates.append((record["step"][0], data))
    if not updates:
        raise InputError(f"{path}: no update of training; was the run cut short?")
    steady = [data for epoch, data in updates if epoch > 1] or [data for _, data in updates[1:] or updates]
    took = fmean(data["train_took"] for data in steady)
    speed = fmean(data["train_frames/s"] * data["train_took"] for data in steady) / took
    full = "full" if options.get("cuda") and options["tf32"] else "fp32"
    return options | {
        "processes": processes,
        "precision": options["amp_dtype"].replace("auto", "mixed") if options["amp"] else full,
        "speed": speed,
        "train_frames/s": speed,
        "avg_sequences/s": processes * options["batch_size"] * options["gradient_accumulation_steps"] / took,
        "train_took": took,
    }


def read_inference(path: Path) -> Run:
    """The last run of inference or recognition that a log holds; raises InputError if it is not complete."""
    options, figures = read_last_run(path)
    vocoders = [re.fullmatch(r"avg_(.+)_samples/s", name) for name in figures]
    vocoder = next((found[1] for found in vocoders if found), None)
    figures = {name.replace(f"_{vocoder}_", "_vocoder_"): value for name, value in figures.items()}
    if "avg_latency" not in figures:  # either stage ran alone
        stage = "vocoder_" if vocoder else "generator_"
        figures = {name.replace(stage, ""): value for name, value in figures.items()} | figures
    if "avg_latency" not in figures:
        raise InputError(f"{path}: no averages of a run; was it cut short?")
    return options | figures | {"speed": 1 / figures["avg_latency"]}


def rows(logs: Sequence[str]) -> list[Row]:
    """The rows of the table of these runs; logs of training are given as processes=log.

    Raises:
        InputError: a log cannot be read, or its run was cut short.
    """
    runs = []
    for log in logs:
        training = re.fullmatch(r"(\d+)=(.+)", log)
        runs.append(read_training(Path(training[2]), int(training[1])) if training else read_inference(Path(log)))
    for one in runs:
        full = [other for other in runs if not other["amp"] and all(other.get(n) == one.get(n) for n in _SAME)]
        if one["amp"] and full:
            one["speed_up"] = one["speed"] / full[-1]["speed"]
        if "processes" in one:
            alike = [other for other in runs if all(other.get(name) == one[name] for name in ("amp", "batch_size"))]
            one["scaling"] = one["speed"] / min(alike, key=lambda other: other["processes"])["speed"]
    columns = [column for column in COLUMNS if any(one.get(column[1]) is not None for one in runs)]
    return [
        {title: "-" if one.get(name) is None else format(one[name], form) for title, name, form in columns}
        for one in runs
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table of the runs given."""
    parser = ArgumentParser(description="print the figures of runs as one table", prog="table")
    parser.add_argument("runs", nargs="+", help="logs that train.py or inference.py wrote; of training processes=log")
    print(*markdown(rows(parser.parse_args(argv).runs)), sep="\n")


if __name__ == "__main__":
    run(main)
