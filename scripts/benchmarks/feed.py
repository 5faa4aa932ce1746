"""Measures how many mel frames/s one training process is fed with: FastPitch 1.1's batches, from files to its memory.

    bash scripts/benchmark.sh feed [--num-workers 8] [--utterances 2000] [--batch-size 32] [--cuda]

Features of noise with lengths like LJSpeech's are written once, and then read from the page cache: mels, pitch, texts
and the aligner's priors. What is measured is train.py's own loader and sampler. The training process copies every batch
once, on a GPU into page-locked memory and from there to the device. Time is that of processors, so that other work on
the machine changes it little: of loader processes and of the training process, which is fed at most as fast as it takes
batches in. The figure "with so many cores" is for a machine that has one for each of these processes.
"""

import os
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from common.cli import run
from common.config import AudioConfig, TextConfig
from common.data import Batch, GlobalBatchSampler, bucketed, build_loader, raise_errors
from common.distributed import Ranks
from common.files import write_json
from common.options import option
from fastpitch.config import ModelConfig
from fastpitch.data_function import FastPitchDataset
from fastpitch.model import FastPitch
from fastpitch.training_list import read_list
from scripts.benchmarks.measuring import choose_device, machine, markdown, read_command
from scripts.benchmarks.random_models import LIST, make_corpus
from scripts.benchmarks.train import FRAMES


@dataclass(frozen=True)
class FeedOptions:
    """What is fed, and how."""

    num_workers: int = option(8, "loader processes", least=1, most=1024)
    utterances: int = option(2000, "of the corpus", least=1)
    batch_size: int = option(32, "utterances of one micro-batch", least=1, names=("-bs",))
    accumulation: int = option(8, "micro-batches an update", least=1)
    epochs: int = option(3, "that are timed, after one that is not", least=1)
    length_buckets: int = option(0, "as of train.py", least=0, metavar="N")
    cuda: bool = option(False, "copy batches to the GPU")
    json: Path | None = option(None, "file for the figures", writes=True)
    seed: int = option(1234, "of corpus and draws", least=0)


@dataclass(frozen=True)
class Figures:
    """What was measured of so many frames."""

    n_frames: int
    seconds: float  # on the clock
    loaders: float  # seconds of processors
    training_process: float  # seconds of processors
    n_workers: int

    @property
    def per_worker_second(self) -> float:
        """Frames for each second of a loader process."""
        return self.n_frames / max(self.loaders, 1e-9)

    @property
    def on_cores(self) -> float:
        """Frames/s where every loader process, and the training process, has a core of its own."""
        return min(self.n_workers * self.per_worker_second, self.n_frames / max(self.training_process, 1e-9))


def make_dataset(folder: Path, options: FeedOptions) -> FastPitchDataset:
    """Utterances of noise in a folder, as FastPitch 1.1 learns from them."""
    audio = AudioConfig()
    generator = torch.Generator().manual_seed(options.seed)
    frames = torch.randint(FRAMES[0], FRAMES[1] + 1, (options.utterances,), generator=generator)
    lengths = (audio.hop_length * frames).tolist()
    make_corpus(folder, lengths, ("mel", "pitch", "text"), sampling_rate=audio.sampling_rate, seed=options.seed)
    text = TextConfig(cleaners=("basic_cleaners",))
    entries = read_list(folder, folder / LIST, learned_alignment=True)
    dataset = FastPitchDataset(folder, entries, audio=audio, text=text, n_speakers=1)
    network = FastPitch(ModelConfig(learned_alignment=True))
    network.pitch_mean.fill_(150.0)
    network.pitch_std.fill_(30.0)
    dataset.normalize_pitch_as(network)
    return dataset


def measure(options: FeedOptions, dataset: FastPitchDataset, device: torch.device) -> Figures:
    """Feed ``options.epochs`` epochs, without the time of one that starts processes and fills caches."""
    datasets, _ = bucketed({"training": dataset}, options.length_buckets)
    sampler = GlobalBatchSampler(
        dataset.lengths,
        batch_size=options.batch_size,
        accumulation=options.accumulation,
        seed=options.seed,
        ranks=Ranks(),
    )
    spent: list[tuple[float, ...]] = []  # frames, then seconds on the clock, in this process, in its children
    for epochs in (1, 1 + options.epochs):
        is_cuda = device.type == "cuda"
        loader = build_loader(
            datasets["training"], sampler, n_workers=options.num_workers, pin_memory=is_cuda, seed=options.seed
        )
        before, seen = _clocks(), 0
        for batch in _taken(raise_errors(batch for _ in range(epochs) for batch in loader), device):
            seen += int(batch.n_frames)
        del loader  # its processes end, and their time is known
        spent.append((seen, *(b - a for a, b in zip(before, _clocks()))))
    frames, clock, own, children = (long - short for short, long in zip(*spent))
    return Figures(int(frames), clock, children, own, options.num_workers)


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


def _clocks() -> tuple[float, float, float]:
    """Seconds on the clock, of this process, and of children that ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter(), time.process_time(), children.ru_utime + children.ru_stime


def main(argv: Sequence[str] | None = None) -> None:
    """Make the features, feed them, and print where the time goes."""
    options = read_command(FeedOptions, argv, prog="feed", about=__doc__)
    device = choose_device(cuda=options.cuda)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(options, make_dataset(Path(folder), options), device)
    copied = f"copied to {machine(cuda=True)}" if options.cuda else "copied once in memory"
    print(f"{options.num_workers} loader processes on {machine(cuda=False)}, {os.cpu_count()} cores; {copied}")
    table = [
        {
            "process": name,
            "core ms/utterance": f"{1000 * seconds / (options.epochs * options.utterances):.3f}",
            "frames/s of a core": f"{figures.n_frames / max(seconds, 1e-9):,.0f}",
        }
        for name, seconds in (("loaders", figures.loaders), ("training process", figures.training_process))
    ]
    print(*markdown(table), sep="\n")
    print(f"fed: {figures.n_frames / figures.seconds:,.0f} frames/s on this machine as it is now")
    print(f"with {options.num_workers + 1} cores: {figures.on_cores:,.0f} frames/s")
    if options.json is not None:
        further = {"per_worker_second": figures.per_worker_second, "on_cores": figures.on_cores}
        write_json(options.json, asdict(figures) | further)


if __name__ == "__main__":
    run(main)
