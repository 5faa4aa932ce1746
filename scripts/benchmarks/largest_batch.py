"""Finds the largest batch that a model can be trained with, and measures training at each batch size on the way.

    python -m scripts.benchmarks.largest_batch --cuda [--model WaveGlow] [--settings fp32 float16] [--largest 1024]

Batch sizes are doubled until one does not fit into memory, then the gap is halved. Each is tried by
``scripts.benchmarks.train`` in a process of its own, so that memory that one leaves fragmented does not fail the next.
The table in Markdown has a line for each that fits; speed is of updates of one micro-batch. Further options, such as
``--wn-channels 256``, are train.py's.
"""

import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common.cli import ArgumentParser, run
from common.errors import InputError, OptionError
from common.files import read_json
from common.options import add_options, option, read_options
from scripts.benchmarks.measuring import Row, cell, machine, markdown
from scripts.benchmarks.train import OUT_OF_MEMORY, Figures, MeasuredOptions, chosen_settings

Try = Callable[[int], Figures | None]  # a batch size -> its figures, None where it does not fit


@dataclass(frozen=True)
class SearchOptions(MeasuredOptions):
    """What is trained, and the batch sizes that are tried."""

    smallest: int = option(1, "batch size to begin with", least=1)
    largest: int | None = option(None, "batch size to stop at; needed on the CPU", least=1)


def parse_args(argv: Sequence[str] | None = None) -> tuple[SearchOptions, list[str]]:
    """The options of the search, and those that are for train.py."""
    parser = ArgumentParser(prog="largest_batch", description=(__doc__ or "").partition("\n")[0])
    add_options(parser, SearchOptions, defaults={"model": "WaveGlow"})
    args, further = parser.parse_known_args(argv)
    options: SearchOptions = read_options(args, SearchOptions)
    if options.largest is None and not options.cuda:
        raise OptionError(
            "--largest: give the batch size to stop at; a CPU whose memory is exhausted takes others down"
        )
    if options.largest is not None and options.largest < options.smallest:
        raise OptionError(f"--largest {options.largest} is below --smallest {options.smallest}")
    chosen = chosen_settings(options)  # refuses what the device or model does not have
    names = options.settings or tuple(setting.name for setting in chosen if not setting.plain)
    return replace(options, settings=names), further


def search(attempt: Try, *, smallest: int, largest: int | None) -> tuple[dict[int, Figures], int | None]:
    """Figures of each batch size that fits, and the smallest that was found not to; None where ``largest`` fits."""
    found: dict[int, Figures] = {}
    too_large: int | None = None
    size = smallest
    while True:
        figures = attempt(size)
        if figures is None:
            too_large = size
        else:
            found[size] = figures
        fits = max(found, default=0)
        if fits == largest or (too_large is not None and too_large - fits == 1):
            return found, too_large
        if too_large is None:
            size = 2 * fits if largest is None else min(2 * fits, largest)
        else:
            size = (fits + too_large) // 2


def measure(setting: str, batch_size: int, options: SearchOptions, further: Sequence[str] = ()) -> Figures | None:
    """Train in a process of its own; None where memory is too small, InputError where it fails for another reason."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figures.json"
        command = [sys.executable, "-m", "scripts.benchmarks.train", "--settings", setting, "--json", str(path)]
        command += ["--model", options.model, "--max-duration", str(options.max_duration), "--accumulation", "1"]
        command += ["--batch-size", str(batch_size), "--steps", str(options.steps), *further]
        command += ["--segment-length", str(options.segment_length)] if options.segment_length else []
        command += ["--cuda"] * options.cuda + ["--compile"] * options.compile
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return Figures(**read_json(path)[setting])
    # A machine without memory kills what asks for it.
    if done.returncode in (OUT_OF_MEMORY, -signal.SIGKILL):
        return None
    reason = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    raise InputError(f"{setting}, batch size {batch_size}: exit status {done.returncode}: {reason}")


def rows(setting: str, found: dict[int, Figures], too_large: int | None) -> list[Row]:
    """The table's rows, ordered by batch size."""
    at_most = "yes" if too_large is not None else "not reached"
    return [
        {
            "Batch size": str(size),
            "Precision": setting,
            "Mels/s": f"{figures.frames_per_second:,.0f}",
            "Samples/s": cell(figures.samples_per_second, ",.0f"),
            "Seconds/update": f"{figures.seconds:.3f}",
            "GPU memory (GiB)": cell(figures.memory, ".1f"),
            "Largest that fits": at_most if size == max(found) else "",
        }
        for size, figures in sorted(found.items())
    ]


def main() -> int:
    """Search in each precision, then print the table and what was found."""
    options, further = parse_args()
    print(f"{options.model} on {machine(cuda=options.cuda)}", file=sys.stderr)
    table: list[Row] = []
    summary: list[str] = []
    for setting in options.settings:

        def attempt(size: int, setting: str = setting) -> Figures | None:
            figures = measure(setting, size, options, further)
            result = "does not fit" if figures is None else f"{figures.frames_per_second:,.0f} mels/s"
            print(f"{setting}, batch size {size}: {result}", file=sys.stderr)
            return figures

        found, too_large = search(attempt, smallest=options.smallest, largest=options.largest)
        table += rows(setting, found, too_large)
        if not found:
            summary.append(f"{setting}: not even {options.smallest} fits")
        elif too_large is None:
            summary.append(f"{setting}: {max(found)} fits, where the search stops")
        else:
            summary.append(f"{setting}: {max(found)} is the largest batch that fits")
    print(*markdown(table), "", *summary, sep="\n")
    return 0


if __name__ == "__main__":
    run(main)
