"""Times updates of full-size networks on batches that stay on the device, and lists the longest kernels.

    python -m scripts.benchmarks.updates output/benchmark --model FastPitch -bs 64 --accumulation 4 --steps 8 --cuda

trains on noise. All batches are computed once before they are timed; reading files is not, which `benchmark.sh train`
times too. Further arguments go to train.py.
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
from common.training.trainer import Trainer
from scripts.benchmarking import SETTINGS
from scripts.benchmarks.random_models import COLUMNS, LIST, draw_lengths, make_corpus
from scripts.benchmarks.table import markdown

N_KERNELS = 10
_WIDEST = 90  # characters of a kernel's name


def measure(words: Sequence[str]) -> tuple[dict[str, float], str]:
    """Train by ``words`` of train.py; returns figures of an update, and PyTorch's table of its longest kernels."""
    command = read_command(parse_command_line(words))
    computing = command.request.computing
    with processes(cuda=computing.cuda) as ranks:
        amp_dtype = prepare_computing(computing).amp_dtype
        trainer = build_trainer(command, ranks, amp_dtype=amp_dtype)
        batches = list(trainer.updates())
        _train(trainer, batches)
        start = time.perf_counter()
        n_frames = _train(trainer, batches)
        seconds = (time.perf_counter() - start) / len(batches)
        figures = {"seconds": seconds, "frames/s": n_frames / len(batches) / seconds}
        n_utterances = sum(len(batch.names) for update in batches for batch in update) / len(batches)
        figures["sequences/s"] = n_utterances / seconds
        if computing.cuda:
            figures["GiB"] = torch.cuda.max_memory_reserved() / 2**30
        kind, order = (ProfilerActivity.CPU, "self_cpu_time_total")
        if computing.cuda:
            kind, order = (ProfilerActivity.CUDA, "self_device_time_total")
        with profile(activities=[kind]) as profiled:
            _train(trainer, batches)
    return figures, profiled.key_averages().table(order, row_limit=N_KERNELS, max_name_column_width=_WIDEST)


def _train(trainer: Trainer, updates: Sequence[list]) -> int:
    """Train on batches; their valid frames."""
    results = [trainer.engine.step(batches, epoch=1) for batches in updates]
    return sum(result.n_frames for result in results)


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line for each precision, then the kernels of the last one."""
    parser = ArgumentParser(prog="updates", description="time updates on batches that stay on the device")
    add = parser.add_argument
    add("folder", type=Path, help="where the corpus goes")
    add("--model", choices=available_models(), default="FastPitch", help="what is trained")
    add("--batch-size", "-bs", type=int, default=16, help="utterances of a micro-batch")
    add("--accumulation", type=int, default=1, help="micro-batches of an update")
    add("--steps", type=int, default=4, help="updates that are timed")
    add("--settings", nargs="+", choices=SETTINGS, default=["full", "mixed"], help="precisions")
    add("--cuda", action="store_true", help="train on a GPU")
    add("--max-duration", type=float, default=16.7, help="s, of Jasper's longest recording")
    args, others = parser.parse_known_args(argv)
    model, folder = args.model, args.folder / f"{args.model}_noise"
    columns = "mel pitch text" if "--learned-alignment" in others else COLUMNS.get(model, "wav")
    count, rate = args.steps * args.batch_size * args.accumulation, 16000 if model == "Jasper" else 22050
    make_corpus(folder, draw_lengths(model, count, rate, args.max_duration), columns.split(), sampling_rate=rate)
    words = ["--model", model, "--dataset-path", folder, "--output", folder / "out", "--batch-size", args.batch_size]
    words += ["--training-files", folder / LIST, "--validation-files", folder / "val.txt", "--epochs", 1]
    words += ["--gradient-accumulation-steps", args.accumulation, *["--cuda"] * args.cuda]
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
