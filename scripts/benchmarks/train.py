"""Measures training: mel frames a second of a full-size model, in each precision, on this machine.

    bash scripts/benchmark.sh train [--model HiFi-GAN] [--steps 2]

A step is what train.py does, by its engine, sampler and optimizers, from batches that are ready in memory. The first
line of the table is the plain way; the others are compared to it. Further options are train.py's.

FastPitch and Tacotron 2 learn from made-up utterances with lengths like LJSpeech's: uniform from 150 to 860 frames, 5.7
frames a character. Their plain way is float32 and utterances of any length together, padding computed with them as the
original does. Jasper learns from noise of lengths like LibriSpeech's, up to --max-duration; its plain way is the same.
Vocoders learn from made-up segments, of 8192 samples for HiFi-GAN (v1) and 8000 for WaveGlow. HiFi-GAN's plain way is
float32 with recordings and generated sound in two passes of the discriminators; WaveGlow has none, so that float32 is
what it is compared to.

A batch that does not fit into memory ends the run in one line with the exit status 3.
"""

import argparse
import itertools
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from common import distributed
from common.cli import ArgumentParser, positive_int, run, seed_number
from common.data import Batch, GlobalBatchSampler
from common.distributed import Ranks
from common.errors import OptionError
from common.files import write_json
from common.precision import Precision, has_bfloat16
from common.timing import Stopwatch
from scripts.benchmarks.machine import machine
from scripts.benchmarks.subjects import (
    Setting,
    add_arguments,
    build,
    draw_lengths,
    make_corpus,
    segment_length,
    subject_of,
)
from scripts.benchmarks.table import Table, cell

OUT_OF_MEMORY = 3  # exit status


@dataclass(frozen=True)
class Figures:
    """What was measured of one setting."""

    frames_per_second: float  # of all processes
    samples_per_second: float | None  # of sound that a vocoder trained on
    seconds: float  # of an update
    memory: float | None  # GiB: the GPU's peak; None on the CPU
    sequences_per_second: float  # utterances or segments of all processes


def parse_args(argv: Sequence[str] | None = None) -> tuple[argparse.Namespace, list[str]]:
    """The benchmark's options, and those that are for train.py."""
    parser = ArgumentParser(prog="benchmarks.train", description=__doc__.splitlines()[0])
    add_arguments(parser, model="FastPitch", steps=2)
    parser.add_argument("-bs", "--batch-size", type=positive_int, default=16)
    parser.add_argument("--accumulation", type=positive_int, default=4, help="micro-batches an update")
    parser.add_argument("--json", type=Path, help="file for the figures, by setting")
    parser.add_argument("--seed", type=seed_number, default=1234)
    return parser.parse_known_args(argv)


def main() -> int:
    """Measure each setting in turn and print the table."""
    args, further = parse_args()
    settings = chosen_settings(args)
    ranks = distributed.start(cuda=args.cuda)
    if ranks.is_main:
        print(f"{args.model} on {machine(cuda=args.cuda)}\ntorch {torch.__version__}; {' '.join(sys.argv)}")
        print(f"global batch {ranks.world_size} x {args.accumulation} x {args.batch_size}, {args.steps} updates a line")
    plain, measured, table = None, {}, Table()
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder)
        n_updates = args.steps + 1  # one before measuring
        count = args.batch_size * args.accumulation * ranks.world_size * n_updates
        lengths, rate = draw_lengths(count, args, further)
        make_corpus(corpus, lengths, subject_of(args.model).columns, sampling_rate=rate, seed=args.seed)
        for setting in settings:
            try:
                figures = measure(setting, args, further, corpus, ranks)
            except (RuntimeError, MemoryError) as error:
                if not _is_out_of_memory(error):
                    raise
                print(f"error: {setting.name}: out of memory at --batch-size {args.batch_size}", file=sys.stderr)
                return OUT_OF_MEMORY
            plain = plain or figures.frames_per_second
            if ranks.is_main:
                table.add(
                    {
                        "setting": setting.name,
                        "frames/s": f"{figures.frames_per_second:.0f}",
                        "sequences/s": f"{figures.sequences_per_second:.2f}",
                        "ratio": f"{figures.frames_per_second / plain:.2f}",
                        "s/update": f"{figures.seconds:.3f}",
                        "GPU memory (GiB)": cell(figures.memory, ".1f"),
                    }
                )
                measured[setting.name] = asdict(figures)
                if args.json is not None:
                    write_json(args.json, measured)
    distributed.stop()
    return 0


def chosen_settings(args: argparse.Namespace) -> list[Setting]:
    """The lines of the table; raises OptionError for one that this model or device does not have.

    By default bfloat16 is left out, with a note, on a processor that emulates it: that takes a quarter of an hour.
    """
    half = [torch.float16, torch.bfloat16] if args.cuda else [torch.bfloat16]
    settings = [Setting("plain fp32", plain=True)] if subject_of(args.model).has_plain else []
    settings.append(Setting("fp32"))
    if args.cuda:
        settings.append(Setting("tf32", tf32=True))
    for dtype in half:
        name = str(dtype).removeprefix("torch.")
        settings.append(Setting(name, dtype, tf32=args.cuda))
        if args.model == "HiFi-GAN":
            own = Setting(f"{name}, no AMP in groups", dtype, tf32=args.cuda, options=("--no-amp-grouped-conv",))
            settings.append(own)
    if args.settings is None and not args.cuda and not has_bfloat16(cuda=False):
        note = "this processor has no bfloat16 instructions; --settings bfloat16 measures their emulation"
        print(f"note: bfloat16 is left out: {note}", file=sys.stderr)
        return [setting for setting in settings if setting.amp_dtype is None]
    if args.settings is None:
        return settings
    known = {setting.name: setting for setting in settings}
    for name in args.settings:
        if name not in known:
            raise OptionError(f"--settings {name!r}: expected some of {', '.join(map(repr, known))}")
    return [known[name] for name in args.settings]


def measure(setting: Setting, args: argparse.Namespace, further: Sequence[str], corpus: Path, ranks: Ranks) -> Figures:
    """Train a new model for one update that is not timed and ``args.steps`` that are."""
    torch.manual_seed(args.seed)
    cudnn_benchmark = args.cuda and subject_of(args.model).cudnn_benchmark
    Precision(args.cuda, setting.amp_dtype, setting.tf32, cudnn_benchmark).prepare_process()
    engine, dataset = build(setting, args, further, corpus, ranks)
    steps = _steps(setting, dataset, args, ranks)
    engine.step(next(steps), epoch=1)  # warm-up: allocations, choice of algorithms, compilation
    if args.cuda:
        torch.cuda.reset_peak_memory_stats(ranks.device)
    updates, stopwatch = list(itertools.islice(steps, args.steps)), Stopwatch(ranks.device)
    ranks.barrier()
    with stopwatch.running():  # no result is read before the end: an update may be launched while the last one runs
        results = [engine.step(micro_batches, epoch=1) for micro_batches in updates]
        frames = sum(result.n_frames for result in results)
        ranks.barrier()
    sequences = args.batch_size * args.accumulation * ranks.world_size * args.steps
    memory = torch.cuda.max_memory_allocated(ranks.device) / 2**30 if args.cuda else None
    spent, segment = stopwatch.seconds, segment_length(args)
    samples = None if segment is None else segment * sequences / spent
    return Figures(frames / spent, samples, spent / args.steps, memory, sequences / spent)


def _steps(setting: Setting, dataset: Any, args: argparse.Namespace, ranks: Ranks) -> Iterator[list[Batch]]:
    """This process's micro-batches of one update after another, on the device."""
    count = len(dataset)
    # Lengths that all look alike leave the draw in random order.
    lengths = [0] * count if setting.plain else dataset.lengths
    sampler = GlobalBatchSampler(
        lengths, batch_size=args.batch_size, accumulation=args.accumulation, seed=args.seed, ranks=ranks
    )
    indices = [[draw.index for draw in batch] for batch in sampler]
    if setting.plain:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(args.seed)).tolist()
        indices = [[order[index] for index in batch] for batch in indices]
    for start in range(0, len(indices), args.accumulation):
        group = indices[start : start + args.accumulation]
        batches = [dataset.collate([dataset.draw(index, epoch=1) for index in batch]) for batch in group]
        yield [batch.to(ranks.device) for batch in batches]


def _is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory is exhausted; PyTorch has no class of its own for that on CPUs."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


if __name__ == "__main__":
    run(main)
