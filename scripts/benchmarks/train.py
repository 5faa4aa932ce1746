"""Measures training: mel frames a second of a full-size model, in each precision, on this machine.

    bash scripts/benchmark.sh train [--model HiFi-GAN] [--steps 2]
    .venv/bin/python -m scripts.benchmarks.train --model WaveGlow --cuda -bs 1 --accumulation 1 --largest-batch 1024

An update is what train.py does, from batches that are ready in memory, after one
update that is not timed. Further options are train.py's.

Models learn from noise with lengths like LJSpeech's: uniform from 150 to 860 frames, 5.7 frames a character; vocoders
that cut segments out of recordings from one second each; recognizers from lengths like LibriSpeech's, up to
--max-duration. With --largest-batch the batch size is doubled until memory does not suffice, and the gap halved then.
"""

import gc
import itertools
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from common import distributed
from common.cli import ArgumentParser, run
from common.config import AudioConfig
from common.distributed import Ranks
from common.errors import InputError
from common.options import add_options, option, read_options
from common.precision import has_bfloat16
from common.registry import available_models, get_model
from common.timing import Stopwatch
from common.training.start import build_trainer, read_command
from common.training.trainer import Trainer
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


RECOGNIZED = ("wav text", "")
# Columns of a model's training list, and options of train.py to it.
CORPORA: dict[str, tuple[str, str]] = {
    "FastPitch": ("mel durations pitch text", "--text-cleaners basic_cleaners"),
    "Tacotron2": ("mel text", "--load-mel-from-disk --text-cleaners basic_cleaners"),
    "HiFi-GAN": ("wav", "--concat-fwd"),
    "WaveGlow": ("wav", ""),
    "Harmonic": ("wav", ""),
    "Jasper": (RECOGNIZED[0], "--learning-rate 1e-4"),  # noise has nothing to teach; large steps would only diverge
}
# Columns of figures and their formats; frames are of all processes, memory is the GPU's peak.
FORMATS = {"frames/s": ".0f", "sequences/s": ".2f", "ratio": ".2f", "s/update": ".3f", "GPU memory (GiB)": ".1f"}


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
    audio, (least, most) = AudioConfig(), ONE_SECOND if options.model in ("HiFi-GAN", "WaveGlow") else FRAMES
    frames = torch.randint(least, most + 1, (count,), generator=torch.Generator().manual_seed(options.seed))
    return (audio.hop_length * frames).tolist(), audio.sampling_rate


def build(setting: str, options: BenchmarkOptions, further: Sequence[str], folder: Path, ranks: Ranks) -> Trainer:
    """A new training on the corpus in ``folder``; ``further`` are options of train.py."""
    files = str(folder / LIST)
    words = ["--model", options.model, "--output", str(folder / "output"), "--dataset-path", str(folder)]
    words += ["--training-files", files, "--validation-files", files, "--batch-size", str(options.batch_size)]
    words += ["--gradient-accumulation-steps", str(options.accumulation), "--seed", str(options.seed)]
    words += ["--ema-decay", "0", "--num-workers", "0", *["--cuda"] * options.cuda]
    words += {"fp32": ["--no-tf32"], "tf32": []}.get(setting, ["--amp", "--amp-dtype", setting])
    command = read_command([*words, *CORPORA.get(options.model, RECOGNIZED)[1].split(), *further])
    precision = command.request.computing.prepare()
    setup = command.spec.training.set_up(command.options, command.request)
    trainer, logger = build_trainer(command, setup, ranks, amp_dtype=precision.amp_dtype)
    logger.close()
    return trainer


def measure(setting: str, options: BenchmarkOptions, further: Sequence[str], ranks: Ranks) -> dict[str, float | None]:
    """Train a new model, on a corpus that is made for it, for one update and ``options.steps`` that are timed.

    Returns figures by column, but for the ratio.
    """
    torch.manual_seed(options.seed)
    n_sequences = options.batch_size * options.accumulation * ranks.world_size  # of an update
    with tempfile.TemporaryDirectory() as folder:
        lengths, rate = draw_lengths(n_sequences * (options.steps + 1), options, further)
        columns = CORPORA.get(options.model, RECOGNIZED)[0].split()
        make_corpus(Path(folder), lengths, columns, sampling_rate=rate, seed=options.seed)
        trainer = build(setting, options, further, Path(folder), ranks)
        updates = trainer.updates()
        trainer.engine.step(next(updates), epoch=1)  # allocations, choice of algorithms, compilation
        ready = list(itertools.islice(updates, options.steps))
    if options.cuda:
        torch.cuda.reset_peak_memory_stats(ranks.device)
    stopwatch = Stopwatch(ranks.device)
    ranks.gather(None)
    with stopwatch.running():  # no result is read before the end: an update may be launched while the last one runs
        results = [trainer.engine.step(micro_batches, epoch=1) for micro_batches in ready]
        frames = sum(result.n_frames for result in results)
        ranks.gather(None)
    spent = stopwatch.seconds
    return {
        "frames/s": frames / spent,
        "sequences/s": n_sequences * options.steps / spent,
        "s/update": spent / options.steps,
        "GPU memory (GiB)": torch.cuda.max_memory_allocated(ranks.device) / 2**30 if options.cuda else None,
    }


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
    rows: list[Row] = []
    first: dict[str, float | None] = {}

    def fits(setting: str, batch_size: int) -> bool:
        try:
            figures = measure(setting, replace(options, batch_size=batch_size), further, ranks)
        except (RuntimeError, MemoryError) as error:
            # PyTorch has no class of its own for exhausted memory on CPUs.
            if not isinstance(error, torch.OutOfMemoryError | MemoryError) and "allocate memory" not in str(error):
                raise
            return False
        finally:
            gc.collect()
            torch.cuda.empty_cache()
        if ranks.is_main:
            first.update(first or figures)
            figures["ratio"] = figures["frames/s"] / first["frames/s"]
            cells = {name: cell(figures[name], form) for name, form in FORMATS.items()}
            rows.append({"setting": setting, "batch": str(batch_size)} | cells)
            print(*markdown(rows)[-1 if rows[1:] else 0 :], sep="\n", flush=True)
        return True

    for setting in chosen_settings(options):
        if options.largest_batch is not None:
            size = search(partial(fits, setting), smallest=options.batch_size, largest=options.largest_batch)
            print(f"{setting}: the largest batch up to {options.largest_batch} that fits is {size}")
        elif not fits(setting, options.batch_size):
            raise InputError(f"{setting}: out of memory at --batch-size {options.batch_size}")


if __name__ == "__main__":
    run(main)
