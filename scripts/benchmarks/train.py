"""Measures training: mel frames a second of a full-size model, in each precision, on this machine.

    bash scripts/benchmark.sh train [--model HiFi-GAN] [--steps 2]
    .venv/bin/python -m scripts.benchmarks.train --model WaveGlow --cuda -bs 1 --accumulation 1 --largest-batch 1024

An update is what train.py does, by its engine, sampler and optimizers, from batches that are ready in memory, after one
update that is not timed. Further options are train.py's.

Models learn from noise with lengths like LJSpeech's: uniform from 150 to 860 frames, 5.7 frames a character; vocoders
that cut segments out of recordings from one second each; recognizers from lengths like LibriSpeech's, up to
--max-duration. With --largest-batch the batch size is doubled until memory does not suffice, and the gap halved then.
"""

import gc
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common import distributed
from common.cli import ArgumentParser, run
from common.config import AudioConfig
from common.data import Batch, GlobalBatchSampler
from common.distributed import Ranks
from common.errors import InputError
from common.options import add_options, option, read_options
from common.precision import Precision, has_bfloat16
from common.registry import available_models, get_model
from common.timing import Stopwatch
from common.training import Engine
from common.training.start import read_command
from scripts.benchmarks.measuring import Row, cell, machine, markdown
from scripts.benchmarks.random_models import LIST, configure, durations, make_corpus

FRAMES = (150, 860)  # of an utterance, as LJSpeech's
ONE_SECOND = (87, 87)  # frames; longer than any segment
PRECISIONS = ("fp32", "tf32", "float16", "bfloat16")


@dataclass(frozen=True)
class BenchmarkOptions:
    """What is trained and timed, and where the figures go."""

    model: str = option("FastPitch", "what to train", names=("-m",), choices=available_models())
    batch_size: int = option(16, "utterances of one micro-batch", least=1, names=("-bs",))
    accumulation: int = option(4, "micro-batches an update", least=1)
    steps: int = option(5, "updates that are timed, for each line", least=1)
    settings: tuple[str, ...] = option((), "lines of the table; if not given, those of this device", choices=PRECISIONS)
    largest_batch: int | None = option(
        None, "find the largest batch that memory suffices for, from --batch-size up to this size", least=1
    )
    max_duration: float = option(16.7, "of a recognizer's longest utterance, s", above=0)
    cuda: bool = option(False, "measure the GPU")
    seed: int = option(1234, "of weights, corpus and draws", least=0)


@dataclass(frozen=True)
class Subject:
    """How a model is measured."""

    columns: tuple[str, ...] = ("wav", "text")  # of its training list
    options: tuple[str, ...] = ()  # of train.py
    frames: tuple[int, int] = FRAMES  # of its utterances, least and most


SUBJECTS = {
    "FastPitch": Subject(("mel", "durations", "pitch", "text"), ("--text-cleaners", "basic_cleaners")),
    "Tacotron2": Subject(("mel", "text"), ("--load-mel-from-disk", "--text-cleaners", "basic_cleaners")),
    "HiFi-GAN": Subject(("wav",), ("--concat-fwd",), ONE_SECOND),
    "WaveGlow": Subject(("wav",), (), ONE_SECOND),
    "Harmonic": Subject(("wav",)),
    # Noise has nothing to teach; large steps would only diverge.
    "Jasper": Subject(("wav", "text"), ("--learning-rate", "1e-4")),
}


@dataclass(frozen=True)
class Figures:
    """What was measured of one setting."""

    frames_per_second: float  # of all processes
    sequences_per_second: float  # utterances or segments of all processes
    seconds: float  # of an update
    memory: float | None  # GiB: the GPU's peak; None on the CPU


def chosen_settings(options: BenchmarkOptions) -> tuple[str, ...]:
    """The precisions to measure: by default those that this device has instructions for."""
    if options.settings or options.cuda:
        return options.settings or PRECISIONS
    return ("fp32", "bfloat16") if has_bfloat16(cuda=False) else ("fp32",)


def draw_lengths(count: int, options: BenchmarkOptions, further: Sequence[str]) -> tuple[list[int], int]:
    """Samples of ``count`` utterances, and their sampling rate in Hz; ``further`` are options of train.py."""
    if get_model(options.model).role == "recognizer":
        rate = configure(options.model, further)[1].sampling_rate
        seconds = durations(count, options.max_duration, np.random.default_rng(options.seed))
        return [round(value * rate) for value in seconds], rate
    audio, (least, most) = AudioConfig(), SUBJECTS.get(options.model, Subject()).frames
    frames = torch.randint(least, most + 1, (count,), generator=torch.Generator().manual_seed(options.seed))
    return (audio.hop_length * frames).tolist(), audio.sampling_rate


def build(
    setting: str, options: BenchmarkOptions, further: Sequence[str], folder: Path, ranks: Ranks
) -> tuple[Engine, Any]:
    """A new engine of the model, and its dataset of the corpus in ``folder``; ``further`` are options of train.py."""
    subject, files = SUBJECTS.get(options.model, Subject()), str(folder / LIST)
    words = ["--model", options.model, "--output", str(folder), "--dataset-path", str(folder)]
    words += ["--training-files", files, "--validation-files", files, *["--cuda"] * options.cuda]
    words += [*subject.options, *further]
    amp_dtype = None if setting in ("fp32", "tf32") else getattr(torch, setting)
    if amp_dtype is not None:
        words += ["--amp", "--amp-dtype", setting]
    command = read_command(words)
    spec, run, training = command.spec, command.request.run, command.spec.training
    setup = training.set_up(command.options, command.request)
    config = training.model_config(setup.options, setup.audio, setup.text, base=None)
    networks = spec.build_networks(config, setup.audio, setup.text)
    if training.set_up_networks is not None:
        training.set_up_networks(networks, setup.options, text=setup.text, new=True)
    dataset = training.build_dataset(
        setup.options, run.training_files, audio=setup.audio, text=setup.text, training=True
    )
    tf32 = options.cuda and setting != "fp32"
    Precision(options.cuda, amp_dtype, tf32, command.request.computing.cudnn_benchmark).prepare_process()
    engine = Engine(
        networks,
        training.build_objective(setup.options, setup.audio),
        setup.optimization,
        replace(run, ema_decay=0.0),
        steps_per_epoch=options.steps,
        ranks=ranks,
        amp_dtype=amp_dtype,
        same_shapes=setup.same_shapes,
    )
    return engine, dataset


def measure(setting: str, options: BenchmarkOptions, further: Sequence[str], ranks: Ranks) -> Figures:
    """Train a new model, on a corpus that is made for it, for one update and ``options.steps`` that are timed."""
    torch.manual_seed(options.seed)
    n_sequences = options.batch_size * options.accumulation * ranks.world_size  # of an update
    with tempfile.TemporaryDirectory() as folder:
        lengths, rate = draw_lengths(n_sequences * (options.steps + 1), options, further)
        columns = SUBJECTS.get(options.model, Subject()).columns
        make_corpus(Path(folder), lengths, columns, sampling_rate=rate, seed=options.seed)
        engine, dataset = build(setting, options, further, Path(folder), ranks)
        updates = _updates(dataset, options, ranks)
        engine.step(next(updates), epoch=1)  # allocations, choice of algorithms, compilation
        ready = list(itertools.islice(updates, options.steps))
    if options.cuda:
        torch.cuda.reset_peak_memory_stats(ranks.device)
    stopwatch = Stopwatch(ranks.device)
    ranks.gather(None)
    with stopwatch.running():  # no result is read before the end: an update may be launched while the last one runs
        results = [engine.step(micro_batches, epoch=1) for micro_batches in ready]
        frames = sum(result.n_frames for result in results)
        ranks.gather(None)
    spent = stopwatch.seconds
    memory = torch.cuda.max_memory_allocated(ranks.device) / 2**30 if options.cuda else None
    return Figures(frames / spent, n_sequences * options.steps / spent, spent / options.steps, memory)


def _updates(dataset: Any, options: BenchmarkOptions, ranks: Ranks) -> Iterator[list[Batch]]:
    """This process's micro-batches of one update after another, on the device."""
    sampler = GlobalBatchSampler(
        dataset.lengths,
        batch_size=options.batch_size,
        accumulation=options.accumulation,
        seed=options.seed,
        ranks=ranks,
    )
    batches = (
        dataset.collate([dataset.draw(draw.index, epoch=1) for draw in batch]).to(ranks.device) for batch in sampler
    )
    while micro_batches := list(itertools.islice(batches, options.accumulation)):
        yield micro_batches


def search(fits: Callable[[int], bool], *, smallest: int, largest: int) -> int:
    """The largest size up to ``largest`` that fits, 0 where none does; sizes are doubled, then the gap is halved."""
    fitting, too_large, size = 0, largest + 1, smallest
    while fitting + 1 < too_large:
        if fits(size):
            fitting = size
        else:
            too_large = size
        doubled = 2 * fitting if too_large > largest else (fitting + too_large) // 2
        size = max(1, min(doubled, too_large - 1))
    return fitting


def parse_args(argv: Sequence[str] | None = None) -> tuple[BenchmarkOptions, list[str]]:
    """The options of the benchmark, and those that are for train.py."""
    parser = ArgumentParser(prog="benchmarks.train", description=(__doc__ or "").partition("\n")[0])
    add_options(parser, BenchmarkOptions)
    args, further = parser.parse_known_args(argv)
    return read_options(args, BenchmarkOptions), further


def row_of(setting: str, batch_size: int, figures: Figures, *, first: Figures) -> Row:
    """The table's row, compared with the ``first`` one."""
    return {
        "setting": setting,
        "batch": str(batch_size),
        "frames/s": f"{figures.frames_per_second:.0f}",
        "sequences/s": f"{figures.sequences_per_second:.2f}",
        "ratio": f"{figures.frames_per_second / first.frames_per_second:.2f}",
        "s/update": f"{figures.seconds:.3f}",
        "GPU memory (GiB)": cell(figures.memory, ".1f"),
    }


def measure_if_it_fits(setting: str, options: BenchmarkOptions, further: Sequence[str], ranks: Ranks) -> Figures | None:
    """The figures; None where memory does not suffice."""
    try:
        return measure(setting, options, further, ranks)
    except (RuntimeError, MemoryError) as error:
        if not _is_out_of_memory(error):
            raise
        return None
    finally:
        gc.collect()
        torch.cuda.empty_cache()


def main() -> int:
    """Run the benchmark of the command line."""
    options, further = parse_args()
    with distributed.processes(cuda=options.cuda) as ranks:
        _measure_settings(options, further, ranks)
    return 0


def _measure_settings(options: BenchmarkOptions, further: Sequence[str], ranks: Ranks) -> None:
    """Measure each setting in turn and print the table."""
    if ranks.is_main:
        print(f"{options.model} on {machine(cuda=options.cuda)}\ntorch {torch.__version__}; {' '.join(sys.argv)}")
        update = f"{ranks.world_size} processes x {options.accumulation} micro-batches"
        print(f"updates of {update}, {options.steps} a line")
    measured: list[Figures] = []
    rows: list[Row] = []

    def fits(setting: str, batch_size: int) -> bool:
        figures = measure_if_it_fits(setting, replace(options, batch_size=batch_size), further, ranks)
        if figures is None or not ranks.is_main:
            return figures is not None
        measured.append(figures)
        rows.append(row_of(setting, batch_size, figures, first=measured[0]))
        print(*markdown(rows)[-1 if rows[1:] else 0 :], sep="\n", flush=True)
        return True

    for setting in chosen_settings(options):
        if options.largest_batch is not None:
            size = search(partial(fits, setting), smallest=options.batch_size, largest=options.largest_batch)
            print(f"{setting}: the largest batch up to {options.largest_batch} that fits is {size}")
        elif not fits(setting, options.batch_size):
            raise InputError(f"{setting}: out of memory at --batch-size {options.batch_size}")


def _is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory is exhausted; PyTorch has no class of its own for that on CPUs."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


if __name__ == "__main__":
    run(main)
