"""Measures how many mel frames/s one training process is fed with: FastPitch 1.1's batches, from files to its memory.

    bash scripts/benchmark.sh feed [--num-workers 8] [--utterances 2000] [--batch-size 32] [--cuda]

Features of noise with lengths like LJSpeech's are written once, and then read from the page cache: mels, pitch, texts
and the aligner's priors. What is measured is train.py's own loader and sampler. The training process copies every batch
once, on a GPU into page-locked memory and from there to the device. Time is that of processors, so that other work on
the machine changes it little: of loader processes, by stages, and of the training process, which is fed at most as fast
as it takes batches in. The figure "on so many cores" is for a machine that has one for each of these processes.
"""

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from common.cli import ArgumentParser, n_processes, non_negative_int, positive_int, run, seed_number
from common.config import AudioConfig, TextConfig
from common.data import Batch, GlobalBatchSampler, bucketed, build_loader, raise_errors
from common.distributed import Ranks
from common.files import write_json
from fastpitch.aligner import padded_priors
from fastpitch.config import ModelConfig
from fastpitch.data_function import FastPitchDataset
from fastpitch.model import FastPitch
from fastpitch.training_list import read_list
from scripts.benchmarks.machine import choose_device, machine
from scripts.benchmarks.subjects import FRAMES, LIST, make_corpus
from scripts.benchmarks.table import markdown


@dataclass(frozen=True)
class Figures:
    """What was measured; seconds are of processors."""

    n_frames: int
    seconds: float  # on the clock
    stages: dict[str, float]  # seconds of the loader processes
    training_process: float  # seconds
    n_workers: int

    @property
    def per_worker_second(self) -> float:
        """Frames for each second of a loader process."""
        return self.n_frames / max(sum(self.stages.values()), 1e-9)

    @property
    def on_cores(self) -> float:
        """Frames/s where every loader process, and the training process, has a core of its own."""
        return min(self.n_workers * self.per_worker_second, self.n_frames / max(self.training_process, 1e-9))


def main(argv: Sequence[str] | None = None) -> None:
    """Make the features, feed them, and print where the time goes."""
    parser = ArgumentParser(prog="benchmarks.feed", description=__doc__.splitlines()[0])
    parser.add_argument("--num-workers", type=n_processes, default=8, help="loader processes")
    parser.add_argument("--utterances", type=positive_int, default=2000)
    parser.add_argument("-bs", "--batch-size", type=positive_int, default=32)
    parser.add_argument("--accumulation", type=positive_int, default=8, help="micro-batches an update")
    parser.add_argument("--epochs", type=positive_int, default=3, help="that are timed, after one that is not")
    parser.add_argument("--length-buckets", type=non_negative_int, default=0, metavar="N", help="as of train.py")
    parser.add_argument("--cuda", action="store_true", help="copy batches to the GPU")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--seed", type=seed_number, default=1234)
    args = parser.parse_args(argv)
    device = choose_device(cuda=args.cuda)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(args, make_dataset(Path(folder), args), device)
    print(f"{args.num_workers} loader processes on {machine(cuda=False)}, {os.cpu_count()} cores; {machine_of(device)}")
    total = sum(figures.stages.values())
    rows = [(f"loader: {name}", seconds) for name, seconds in figures.stages.items()]
    table = [
        {
            "stage": name,
            "core ms/utterance": f"{1000 * seconds / (args.epochs * args.utterances):.3f}",
            "frames/s of a core": f"{figures.n_frames / max(seconds, 1e-9):,.0f}",
        }
        for name, seconds in [*rows, ("loader, all", total), ("training process", figures.training_process)]
    ]
    print(*markdown(table), sep="\n")
    print(f"fed: {figures.n_frames / figures.seconds:,.0f} frames/s on this machine as it is now")
    print(f"with {args.num_workers + 1} cores: {figures.on_cores:,.0f} frames/s")
    if args.json is not None:
        further = {"per_worker_second": figures.per_worker_second, "on_cores": figures.on_cores}
        write_json(args.json, asdict(figures) | further)


def machine_of(device: torch.device) -> str:
    """What batches are copied to."""
    return f"copied to {machine(cuda=True)}" if device.type == "cuda" else "copied once in memory"


def make_dataset(folder: Path, args: argparse.Namespace) -> FastPitchDataset:
    """Utterances of noise in a folder, as FastPitch 1.1 learns from them."""
    audio = AudioConfig()
    generator = torch.Generator().manual_seed(args.seed)
    frames = torch.randint(FRAMES[0], FRAMES[1] + 1, (args.utterances,), generator=generator)
    lengths = (audio.hop_length * frames).tolist()
    make_corpus(folder, lengths, ("mel", "pitch", "text"), sampling_rate=audio.sampling_rate, seed=args.seed)
    text = TextConfig(cleaners=("basic_cleaners",))
    entries = read_list(folder, folder / LIST, learned_alignment=True)
    dataset = FastPitchDataset(folder, entries, audio=audio, text=text, n_speakers=1)
    network = FastPitch(ModelConfig(learned_alignment=True))
    network.pitch_mean.fill_(150.0)
    network.pitch_std.fill_(30.0)
    dataset.normalize_pitch_as(network)
    return dataset


def measure(args: argparse.Namespace, dataset: FastPitchDataset, device: torch.device) -> Figures:
    """Feed ``args.epochs`` epochs after one that fills caches, then take the stages apart in this process."""
    datasets, _ = bucketed({"training": dataset}, args.length_buckets)
    sampler = GlobalBatchSampler(
        dataset.lengths, batch_size=args.batch_size, accumulation=args.accumulation, seed=args.seed, ranks=Ranks()
    )
    spent: list[tuple[float, float, float]] = []  # on the clock, in this process, in its children
    n_frames = 0
    for epochs in (1, 1 + args.epochs):
        is_cuda = device.type == "cuda"
        loader = build_loader(
            datasets["training"], sampler, n_workers=args.num_workers, pin_memory=is_cuda, seed=args.seed
        )
        before, seen = _clocks(), 0
        for batch in _taken(raise_errors(_repeated(loader, epochs)), device):
            seen += int(batch.n_frames)
        del loader  # its processes end, and their time is known
        after = _clocks()
        spent.append(tuple(b - a for a, b in zip(before, after)))
        n_frames = seen - n_frames
    wall, own, children = (long - short for short, long in zip(*spent))
    stages = _stages(dataset, sampler, args.epochs)
    stages["share and the rest"] = max(children - sum(stages.values()), 0.0)
    return Figures(n_frames, wall, stages, own, args.num_workers)


def _repeated(loader: torch.utils.data.DataLoader, epochs: int) -> Iterator[Batch]:
    for _ in range(epochs):
        yield from loader


def _taken(batches: Iterator[Batch], device: torch.device) -> Iterator[Batch]:
    """Batches on the device; on the CPU copied once into the same memory, as pinning does."""
    memory: dict[str, Tensor] = {}
    for batch in batches:
        if device.type == "cuda":
            yield batch.to(device)
            continue
        for name, value in vars(batch).items():
            if isinstance(value, Tensor):
                if name not in memory or memory[name].numel() < value.numel():
                    memory[name] = torch.empty_like(value).flatten()
                memory[name][: value.numel()].view_as(value).copy_(value)
        yield batch


def _stages(dataset: FastPitchDataset, sampler: GlobalBatchSampler, epochs: int) -> dict[str, float]:
    """Seconds of reading and collating so many epochs, taken apart, by one of them in this process."""
    stages = dict.fromkeys(("read and check", "priors", "collate"), 0.0)
    for drawn in sampler:
        started = time.process_time()
        items = [dataset.draw(one.index, epoch=one.epoch) for one in drawn]
        read = time.process_time()
        batch = dataset.collate(items)
        collated = time.process_time()
        padded_priors(batch.mel_lengths.tolist(), batch.token_lengths.tolist())
        priors = time.process_time() - collated
        stages["read and check"] += epochs * (read - started)
        stages["priors"] += epochs * priors
        stages["collate"] += epochs * max(collated - read - priors, 0.0)
    return stages


def _clocks() -> tuple[float, float, float]:
    """Seconds on the clock, of this process, and of children that ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter(), time.process_time(), children.ru_utime + children.ru_stime


if __name__ == "__main__":
    run(main)
