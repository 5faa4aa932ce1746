"""Times updates of full-size networks on batches that stay on the device, and lists the longest kernels.

    python -m scripts.benchmarks.updates output/benchmark --model FastPitch -bs 64 --accumulation 4 --steps 8 --cuda

trains on noise. All batches run once before they are timed. Reading files is only timed by `benchmark.sh train`.
Further arguments go to train.py.
"""

import gc
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from common.cli import ArgumentParser, run
from common.distributed import processes
from common.precision import prepare_computing
from common.registry import available_models
from common.training.options import parse_command_line
from common.training.start import build_trainer, read_command
from scripts.benchmarks.random_models import COLUMNS, LIST, draw_lengths, make_corpus
from scripts.benchmarks.table import markdown

SETTINGS = {  # precision -> options of train.py
    "full": [],
    "mixed": ["--amp"],
    "fp32": ["--no-tf32"],
    "tf32": ["--tf32"],
    "float16": ["--amp", "--amp-dtype", "float16"],
    "bfloat16": ["--amp", "--amp-dtype", "bfloat16"],
}


def measure(words: Sequence[str]) -> tuple[dict[str, float], str]:
    """Train with ``words`` for train.py; return figures of an update, and PyTorch's table of the longest kernels."""
    options, request = read_command(*parse_command_line(words))
    computing = request.computing
    with processes(cuda=computing.cuda) as ranks:
        trainer = build_trainer(options, request, ranks, amp_dtype=prepare_computing(computing).amp_dtype)
        batches = list(trainer.updates())

        def train() -> int:
            return sum(trainer.engine.step(update, epoch=1).n_frames for update in batches)

        train()
        start = time.perf_counter()
        n_frames = train()
        seconds = time.perf_counter() - start
        n_utterances = sum(len(batch.names) for update in batches for batch in update)
        figures = {"seconds": seconds / len(batches), "frames/s": n_frames / seconds}
        figures["sequences/s"] = n_utterances / seconds
        if computing.cuda:
            figures["GiB"] = torch.cuda.max_memory_reserved() / 2**30
        kind = ProfilerActivity.CUDA if computing.cuda else ProfilerActivity.CPU
        with profile(activities=[kind]) as profiled:
            train()
    order = "self_device_time_total" if computing.cuda else "self_cpu_time_total"
    return figures, profiled.key_averages().table(order, row_limit=10, max_name_column_width=90)


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line for each precision, then the kernels of the last one."""
    parser = ArgumentParser(prog="updates", description="time updates on batches that stay on the device")
    add = parser.add_argument
    add("folder", type=Path, help="folder for the corpus")
    add("--model", choices=available_models(), default="FastPitch", help="model to train")
    add("--batch-size", "-bs", type=int, default=16, help="utterances in a micro-batch")
    add("--accumulation", type=int, default=1, help="micro-batches in an update")
    add("--steps", type=int, default=4, help="updates to time")
    add("--settings", nargs="+", choices=SETTINGS, default=["full", "mixed"], help="precisions")
    args, others = parser.parse_known_args(argv)
    model, folder = args.model, args.folder / f"{args.model}_noise"
    columns = "mel pitch text" if "--learned-alignment" in others else COLUMNS.get(model, "wav")
    count, rate = args.steps * args.batch_size * args.accumulation, 16000 if model == "Jasper" else 22050
    make_corpus(folder, draw_lengths(model, count, rate), columns.split(), sampling_rate=rate)
    words = ["--model", model, "--dataset-path", folder, "--output", folder / "out", "--batch-size", args.batch_size]
    words += ["--training-files", folder / LIST, "--validation-files", folder / "val.txt", "--epochs", 1]
    words += ["--gradient-accumulation-steps", args.accumulation]
    words += [*["--load-mel-from-disk"] * (columns == "mel text"), *others]
    kernels, rows = "", []
    for setting in args.settings:
        figures, kernels = measure([*map(str, words), *SETTINGS[setting]])
        row = {"model": model, "precision": setting, "batch": f"{args.batch_size} x {args.accumulation}"}
        rows.append(row | {name: f"{figure:,.6g}" for name, figure in figures.items()})
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    print(*markdown(rows), kernels, sep="\n")


if __name__ == "__main__":
    run(main)
