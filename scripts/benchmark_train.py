"""Measures training: unpadded mel frames a second of a full-size model, in each precision, on this machine.

    python -m scripts.benchmark_train [--cuda] [--batch-size 16] [--accumulation 4] [--steps 2]

Utterances are made up, with lengths like LJSpeech's: uniform from 150 to 860 frames, 5.7 frames a character. A step is
what train.py does, by its engine, sampler and optimizer, from data that is ready in memory. The first line of the
table is the plain way, float32 and utterances of any length together, padding computed with them as the original does;
the others are compared to it.
"""

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from common import distributed
from common.cli import ArgumentParser, positive_int, run
from common.config import AudioConfig
from common.distributed import Ranks
from common.engine import Engine, EngineOptions
from common.host_memory import keep_freed_memory
from common.optim import build_optimizer, inverse_sqrt_schedule
from common.sampler import GlobalBatchSampler
from fastpitch.data_function import FastPitchBatch
from fastpitch.loss_function import FastPitchObjective
from fastpitch.model import ModelConfig, build_networks

_FRAMES = (150, 860)  # of an utterance
_FRAMES_A_CHARACTER = 5.7


@dataclass(frozen=True)
class Setting:
    """One line of the table."""

    name: str
    amp_dtype: torch.dtype | None = None
    plain: bool = False  # utterances of any length together, padding computed with them
    tf32: bool = False


def parse_args() -> argparse.Namespace:
    """The benchmark's options."""
    parser = ArgumentParser(prog="benchmark_train", description=__doc__.splitlines()[0])
    parser.add_argument("--cuda", action="store_true", help="measure the GPU")
    parser.add_argument("-bs", "--batch-size", type=positive_int, default=16)
    parser.add_argument("--accumulation", type=positive_int, default=4, help="micro-batches an update")
    parser.add_argument("--steps", type=positive_int, default=2, help="updates that are timed, for each line")
    parser.add_argument("--compile", action="store_true", help="compile the network with torch.compile")
    parser.add_argument("--seed", type=int, default=1234)
    return parser.parse_args()


def main() -> int:
    """Measure each setting in turn and print the table."""
    args = parse_args()
    ranks = distributed.start(cuda=args.cuda)
    if not args.cuda:
        keep_freed_memory()
    settings = [Setting("fp32, the plain way", plain=True), Setting("fp32")]
    if args.cuda:
        settings += [Setting("tf32", tf32=True), Setting("float16", torch.float16, tf32=True)]
    settings.append(Setting("bfloat16", torch.bfloat16, tf32=args.cuda))
    if ranks.is_main:
        print(f"{_machine(args)}\ntorch {torch.__version__}; {' '.join(sys.argv)}")
        print(f"global batch {ranks.world_size} x {args.accumulation} x {args.batch_size}, {args.steps} updates a line")
        print(f"{'setting':<28} {'frames/s':>10} {'ratio':>6} {'s/update':>9} {'memory':>9}")
    plain = None
    for setting in settings:
        frames_per_second, seconds, memory = measure(setting, args, ranks)
        plain = plain or frames_per_second
        if ranks.is_main:
            ratio = frames_per_second / plain
            print(f"{setting.name:<28} {frames_per_second:>10.0f} {ratio:>6.2f} {seconds:>9.3f} {memory:>9}")
    distributed.stop()
    return 0


def measure(setting: Setting, args: argparse.Namespace, ranks: Ranks) -> tuple[float, float, str]:
    """Frames a second of all processes, median seconds of an update, and the GPU's peak memory."""
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high" if setting.tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = setting.tf32
    engine = _engine(setting, args, ranks)
    steps = _steps(setting, args, ranks)
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
    memory = f"{torch.cuda.max_memory_allocated(ranks.device) / 2**30:.1f} GiB" if args.cuda else "-"
    return frames / sum(times), statistics.median(times), memory


def _engine(setting: Setting, args: argparse.Namespace, ranks: Ranks) -> Engine:
    networks = build_networks(ModelConfig(mask_convolutions=not setting.plain), AudioConfig(), None)
    network = networks["fastpitch"].to(ranks.device).train()
    if args.compile:
        network.compile(dynamic=True)
    optimizer = build_optimizer("lamb", network.parameters(), learning_rate=0.1, weight_decay=1e-6)
    return Engine(
        networks,
        FastPitchObjective(),
        {"fastpitch": optimizer},
        schedules={"fastpitch": inverse_sqrt_schedule(0.1, warmup_steps=1000)},
        ranks=ranks,
        options=EngineOptions(amp_dtype=setting.amp_dtype, grad_clip=1000.0),
    )


def _steps(setting: Setting, args: argparse.Namespace, ranks: Ranks) -> Iterator[list[FastPitchBatch]]:
    """This process's micro-batches of one update after another, on the device."""
    generator = torch.Generator().manual_seed(args.seed)
    count = args.batch_size * args.accumulation * ranks.world_size * (args.steps + 1)
    lengths = torch.randint(_FRAMES[0], _FRAMES[1] + 1, (count,), generator=generator).tolist()
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
        yield [_batch([lengths[index] for index in batch], generator).to(ranks.device) for batch in group]


def _batch(lengths: list[int], generator: torch.Generator) -> FastPitchBatch:
    """Made-up utterances of these lengths."""
    tokens = [round(length / _FRAMES_A_CHARACTER) for length in lengths]
    size, n_tokens = max(lengths), max(tokens)
    durations = torch.zeros(len(lengths), n_tokens, dtype=torch.int64)
    for row, (length, count) in enumerate(zip(lengths, tokens)):
        ends = torch.linspace(0, length, count + 1).round().long()
        durations[row, :count] = ends.diff()
    return FastPitchBatch(
        names=tuple(f"made up {index}" for index in range(len(lengths))),
        tokens=torch.randint(1, 148, (len(lengths), n_tokens), generator=generator),
        token_lengths=torch.tensor(tokens),
        mels=torch.randn(len(lengths), 80, size, generator=generator) - 5,
        mel_lengths=torch.tensor(lengths),
        durations=durations,
        pitch=torch.randn(len(lengths), n_tokens, generator=generator),
    )


def _synchronize(ranks: Ranks) -> None:
    if ranks.device.type == "cuda":
        torch.cuda.synchronize(ranks.device)
    ranks.barrier()


def _machine(args: argparse.Namespace) -> str:
    if args.cuda:
        return torch.cuda.get_device_name()
    return f"{platform.machine()} CPU, {torch.get_num_threads()} threads"


if __name__ == "__main__":
    run(main)
