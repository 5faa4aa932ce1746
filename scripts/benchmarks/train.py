"""Measures training: mel frames a second of a full-size model, in each precision, on this machine.

    python -m scripts.benchmarks.train [--model HiFi-GAN] [--cuda] [--batch-size 16] [--accumulation 4] [--steps 2]

A step is what train.py does, by its engine, sampler and optimizers, from data that is ready in memory. The first line
of the table is the plain way; the others are compared to it.

FastPitch and Tacotron 2 learn from made-up utterances with lengths like LJSpeech's: uniform from 150 to 860 frames, 5.7
frames a character. Their plain way is float32 and utterances of any length together, padding computed with them as the
original does. Jasper hears noise of lengths like LibriSpeech's, up to --max-duration; its plain way is the same.
Vocoders learn from made-up segments, of 8192 samples for HiFi-GAN (v1) and 8000 for WaveGlow. HiFi-GAN's plain way is
float32 with recordings and generated sound judged in two passes of the discriminators; WaveGlow has none, so that
float32 is what it is compared to.

A batch that does not fit into memory ends the run in one line with the exit status 3.
"""

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from common import distributed
from common.cli import ArgumentParser, positive_int, run
from common.data.batch import Batch
from common.data.sampler import GlobalBatchSampler
from common.distributed import Ranks
from common.errors import OptionError
from common.files import write_json
from common.precision import keep_freed_memory
from common.training.engine import Engine
from common.training.optim import build_optimizer
from scripts.benchmarks.subjects import VOCODERS, Setting, Subject, add_arguments, build, segment_length

OUT_OF_MEMORY = 3  # exit status


@dataclass(frozen=True)
class Figures:
    """What was measured of one setting."""

    frames_per_second: float  # of all processes
    samples_per_second: float | None  # of sound that a vocoder learnt from
    seconds: float  # median of an update
    memory: float | None  # GiB: the GPU's peak; None on the CPU
    sequences_per_second: float  # utterances or segments of all processes


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The benchmark's options."""
    parser = ArgumentParser(prog="benchmark_train", description=__doc__.splitlines()[0])
    add_arguments(parser, model="FastPitch")
    parser.add_argument("--cuda", action="store_true", help="measure the GPU")
    parser.add_argument("-bs", "--batch-size", type=positive_int, default=16)
    parser.add_argument("--accumulation", type=positive_int, default=4, help="micro-batches an update")
    parser.add_argument("--steps", type=positive_int, default=2, help="updates that are timed, for each line")
    parser.add_argument("--settings", nargs="+", help="lines of the table; all if not given")
    parser.add_argument("--compile", action="store_true", help="compile the network with torch.compile")
    parser.add_argument("--json", type=Path, help="file for the figures of the last line")
    parser.add_argument("--seed", type=int, default=1234)
    return parser.parse_args(argv)


def main() -> int:
    """Measure each setting in turn and print the table."""
    args = parse_args()
    settings = chosen_settings(args)
    ranks = distributed.start(cuda=args.cuda)
    if not args.cuda:
        keep_freed_memory()
    if ranks.is_main:
        print(f"{args.model} on {machine(args)}\ntorch {torch.__version__}; {' '.join(sys.argv)}")
        print(f"global batch {ranks.world_size} x {args.accumulation} x {args.batch_size}, {args.steps} updates a line")
        print(f"{'setting':<28} {'frames/s':>10} {'sequences/s':>12} {'ratio':>6} {'s/update':>9} {'memory':>9}")
    plain = None
    for setting in settings:
        try:
            figures = measure(setting, args, ranks)
        except (RuntimeError, MemoryError) as error:
            if not _is_out_of_memory(error):
                raise
            print(f"error: {setting.name}: out of memory at --batch-size {args.batch_size}", file=sys.stderr)
            return OUT_OF_MEMORY
        plain = plain or figures.frames_per_second
        if ranks.is_main:
            ratio = figures.frames_per_second / plain
            memory = "-" if figures.memory is None else f"{figures.memory:.1f} GiB"
            print(
                f"{setting.name:<28} {figures.frames_per_second:>10.0f} {figures.sequences_per_second:>12.2f} "
                f"{ratio:>6.2f} {figures.seconds:>9.3f} {memory:>9}"
            )
            if args.json is not None:
                write_json(args.json, asdict(figures))
    distributed.stop()
    return 0


def chosen_settings(args: argparse.Namespace) -> list[Setting]:
    """The lines of the table.

    Raises:
        OptionError: ``--settings`` names one that this model or device does not have.
    """
    half = [torch.float16, torch.bfloat16] if args.cuda else [torch.bfloat16]
    settings = [] if args.model == "WaveGlow" else [Setting("plain fp32", plain=True)]
    settings.append(Setting("fp32"))
    if args.cuda:
        settings.append(Setting("tf32", tf32=True))
    for dtype in half:
        name = str(dtype).removeprefix("torch.")
        settings.append(Setting(name, dtype, tf32=args.cuda))
        if args.model == "HiFi-GAN":
            name = f"{name}, no AMP in groups"
            settings.append(Setting(name, dtype, tf32=args.cuda, amp_grouped_conv=False))
    if args.settings is None:
        return settings
    known = {setting.name: setting for setting in settings}
    for name in args.settings:
        if name not in known:
            raise OptionError(f"--settings {name!r}: expected some of {', '.join(map(repr, known))}")
    return [known[name] for name in args.settings]


def measure(setting: Setting, args: argparse.Namespace, ranks: Ranks) -> Figures:
    """Train a new model for one update that is not timed and ``args.steps`` that are."""
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high" if setting.tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = setting.tf32
    torch.backends.cudnn.benchmark = args.cuda and args.model == "WaveGlow"  # as scripts/train_waveglow.sh
    subject = build(setting, args)
    engine = _engine(subject, args, ranks)
    steps = _steps(setting, subject, args, ranks)
    engine.step(next(steps), epoch=1)  # warm-up: allocations, choice of algorithms, compilation
    if args.cuda:
        torch.cuda.reset_peak_memory_stats(ranks.device)
    times, frames = [], 0
    for _ in range(args.steps):
        micro_batches = next(steps)
        _synchronize(ranks)
        started = time.perf_counter()
        frames += engine.step(micro_batches, epoch=1).n_frames
        _synchronize(ranks)
        times.append(time.perf_counter() - started)
    sequences = args.batch_size * args.accumulation * ranks.world_size * args.steps
    samples = segment_length(args) * sequences if args.model in VOCODERS else None
    memory = torch.cuda.max_memory_allocated(ranks.device) / 2**30 if args.cuda else None
    spent = sum(times)
    return Figures(frames / spent, samples and samples / spent, statistics.median(times), memory, sequences / spent)


def _engine(subject: Subject, args: argparse.Namespace, ranks: Ranks) -> Engine:
    networks = subject.networks
    for network in networks.values():
        network.to(ranks.device).train()
        if args.compile:
            network.compile(dynamic=True)
    optimizers = {
        phase.name: build_optimizer(
            parameters=[parameter for name in phase.trains for parameter in networks[name].parameters()],
            **subject.optimizer,
        )
        for phase in subject.objective.phases
    }
    schedules = dict.fromkeys(optimizers, subject.schedule)
    return Engine(networks, subject.objective, optimizers, schedules=schedules, ranks=ranks, options=subject.options)


def _steps(setting: Setting, subject: Subject, args: argparse.Namespace, ranks: Ranks) -> Iterator[list[Batch]]:
    """This process's micro-batches of one update after another, on the device."""
    generator = torch.Generator().manual_seed(args.seed)
    if args.model in VOCODERS:
        lengths = [segment_length(args)] * args.batch_size
        for _ in range(args.steps + 1):
            yield [subject.make_batch(lengths, generator).to(ranks.device) for _ in range(args.accumulation)]
        return
    count = args.batch_size * args.accumulation * ranks.world_size * (args.steps + 1)
    lengths = subject.draw_lengths(count, generator)
    sampler = GlobalBatchSampler(
        # Lengths that all look alike leave the draw in random order.
        [0] * count if setting.plain else lengths,
        batch_size=args.batch_size,
        accumulation=args.accumulation,
        seed=args.seed,
        ranks=ranks,
    )
    indices = list(sampler)
    if setting.plain:
        order = torch.randperm(count, generator=generator).tolist()
        indices = [[order[index] for index in batch] for batch in indices]
    for start in range(0, len(indices), args.accumulation):
        group = indices[start : start + args.accumulation]
        yield [subject.make_batch([lengths[index] for index in batch], generator).to(ranks.device) for batch in group]


def _is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory is exhausted; PyTorch has no class of its own for that on CPUs."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def _synchronize(ranks: Ranks) -> None:
    if ranks.device.type == "cuda":
        torch.cuda.synchronize(ranks.device)
    ranks.barrier()


def machine(args: argparse.Namespace) -> str:
    """What is measured, for people."""
    if args.cuda:
        return torch.cuda.get_device_name()
    return f"{platform.machine()} CPU, {torch.get_num_threads()} threads"


if __name__ == "__main__":
    run(main)
