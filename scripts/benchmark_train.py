"""Measures training: mel frames a second of a full-size model, in each precision, on this machine.

    python -m scripts.benchmark_train [--model HiFi-GAN] [--cuda] [--batch-size 16] [--accumulation 4] [--steps 2]

A step is what train.py does, by its engine, sampler and optimizers, from data that is ready in memory. The first line
of the table is the plain way; the others are compared to it.

FastPitch learns from made-up utterances with lengths like LJSpeech's: uniform from 150 to 860 frames, 5.7 frames a
character. Its plain way is float32 and utterances of any length together, padding computed with them as the original
does. HiFi-GAN (v1) learns from made-up segments of 8192 samples; its plain way is float32 with recordings and generated
sound judged in two passes of the discriminators.
"""

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

import fastpitch.model as fastpitch
import hifigan.model as hifigan
from common import distributed
from common.cli import ArgumentParser, positive_int, run
from common.config import AudioConfig
from common.data import Batch
from common.distributed import Ranks
from common.engine import Engine, EngineOptions
from common.host_memory import keep_freed_memory
from common.optim import build_optimizer, exponential_schedule, inverse_sqrt_schedule
from common.sampler import GlobalBatchSampler
from fastpitch.data_function import FastPitchBatch
from fastpitch.loss_function import FastPitchObjective
from hifigan.data_function import HifiganBatch
from hifigan.loss_function import HifiganObjective
from hifigan.model import PRESETS

_FRAMES = (150, 860)  # of an utterance
_FRAMES_A_CHARACTER = 5.7
_SEGMENT = 8192  # samples


@dataclass(frozen=True)
class Setting:
    """One line of the table."""

    name: str
    amp_dtype: torch.dtype | None = None
    plain: bool = False
    tf32: bool = False
    amp_grouped_conv: bool = True  # of HiFi-GAN: grouped convolutions in mixed precision too


def parse_args() -> argparse.Namespace:
    """The benchmark's options."""
    parser = ArgumentParser(prog="benchmark_train", description=__doc__.splitlines()[0])
    parser.add_argument("-m", "--model", choices=("FastPitch", "HiFi-GAN"), default="FastPitch", help="what to train")
    parser.add_argument("--preset", choices=tuple(PRESETS), default="v1", help="of HiFi-GAN")
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
    settings = _settings(args)
    if ranks.is_main:
        print(f"{args.model} on {_machine(args)}\ntorch {torch.__version__}; {' '.join(sys.argv)}")
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


def _settings(args: argparse.Namespace) -> list[Setting]:
    """The lines of the table."""
    half = [torch.float16, torch.bfloat16] if args.cuda else [torch.bfloat16]
    settings = [Setting("fp32, the plain way", plain=True), Setting("fp32")]
    if args.cuda:
        settings.append(Setting("tf32", tf32=True))
    for dtype in half:
        name = str(dtype).removeprefix("torch.")
        settings.append(Setting(name, dtype, tf32=args.cuda))
        if args.model == "HiFi-GAN":
            name = f"{name}, no AMP in groups"
            settings.append(Setting(name, dtype, tf32=args.cuda, amp_grouped_conv=False))
    return settings


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
    options = EngineOptions(amp_dtype=setting.amp_dtype)
    if args.model == "HiFi-GAN":
        audio = AudioConfig(framing="aligned", peak=0.95)
        networks = hifigan.build_networks(PRESETS[args.preset], audio, None)
        networks["msd"].amp_grouped_conv = setting.amp_grouped_conv
        objective = HifiganObjective(audio, concat_fwd=not setting.plain)
        schedule = exponential_schedule(3e-4, decay=0.9998)
        optimizer = {"name": "adamw", "learning_rate": 3e-4, "weight_decay": 0.01, "betas": (0.8, 0.99), "eps": 1e-8}
    else:
        config = fastpitch.ModelConfig(mask_convolutions=not setting.plain)
        networks = fastpitch.build_networks(config, AudioConfig(), None)
        objective, schedule = FastPitchObjective(), inverse_sqrt_schedule(0.1, warmup_steps=1000)
        optimizer = {"name": "lamb", "learning_rate": 0.1, "weight_decay": 1e-6}
        options = replace(options, grad_clip=1000.0)
    for network in networks.values():
        network.to(ranks.device).train()
        if args.compile:
            network.compile(dynamic=True)
    optimizers = {
        phase.name: build_optimizer(
            parameters=[parameter for name in phase.trains for parameter in networks[name].parameters()], **optimizer
        )
        for phase in objective.phases
    }
    schedules = dict.fromkeys(optimizers, schedule)
    return Engine(networks, objective, optimizers, schedules=schedules, ranks=ranks, options=options)


def _steps(setting: Setting, args: argparse.Namespace, ranks: Ranks) -> Iterator[list[Batch]]:
    """This process's micro-batches of one update after another, on the device."""
    generator = torch.Generator().manual_seed(args.seed)
    if args.model == "HiFi-GAN":
        for _ in range(args.steps + 1):
            yield [_segments(args.batch_size, generator).to(ranks.device) for _ in range(args.accumulation)]
        return
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


def _segments(count: int, generator: torch.Generator) -> HifiganBatch:
    """Made-up segments of recordings."""
    wave = 0.3 * torch.randn(count, _SEGMENT, generator=generator).clamp(-3, 3)
    names = tuple(f"made up {index}" for index in range(count))
    return HifiganBatch(names, wave, torch.full((count,), _SEGMENT), AudioConfig().hop_length)


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
