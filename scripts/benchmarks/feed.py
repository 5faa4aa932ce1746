"""Measures how many mel frames/s one training process is fed with: FastPitch 1.1's batches, from files to its memory.

    bash scripts/benchmark.sh feed [--utterances 2000] [--num-workers 8] [--cuda] [other options of train.py]

Features of noise with lengths like LJSpeech's are read from the page cache by train.py's own loader and sampler. Time
is that of processors, so that other work on the machine changes it little: of loading, measured in this process, and of
taking batches from loader processes. "With so many cores" is for a machine that has one for each process.
"""

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from common.cli import ArgumentParser, run
from common.config import AudioConfig
from common.distributed import Ranks
from common.precision import prepare_computing
from common.training.options import parse_command_line
from common.training.start import build_trainer, read_command
from scripts.benchmarks.random_models import LIST, draw_lengths, make_corpus
from scripts.benchmarks.table import machine, markdown


def measure(words: Sequence[str], folder: Path, *, utterances: int, epochs: int) -> tuple[int, dict[str, float]]:
    """Feed a training on noise, written into ``folder``, with options of train.py in ``words``.

    Returns the number of loader processes, and frames/s: on the clock (``fed``), of a core that does nothing but
    ``loading``, and of the ``training_process``.
    """
    audio, files = AudioConfig(), str(folder / LIST)
    lengths = draw_lengths("FastPitch", utterances, audio.sampling_rate)
    make_corpus(folder, lengths, ("mel", "pitch", "text"), sampling_rate=audio.sampling_rate)
    required = ["--output", str(folder / "output"), "--dataset-path", str(folder), "--training-files", files]
    required += ["--validation-files", files, "--learned-alignment", "--num-workers", "8", "--batch-size", "32"]
    required += ["--gradient-accumulation-steps", "8"]

    def feed(*others: str) -> tuple[int, float, float]:
        command = read_command(parse_command_line([*required, *words, *others]))
        precision = prepare_computing(command.request.computing)
        trainer = build_trainer(command, Ranks(device=precision.device), amp_dtype=precision.amp_dtype)
        n_frames, clock, processor = 0, 0.0, 0.0
        for epoch in range(1 + epochs):
            if epoch == 1:
                n_frames, clock, processor = 0, time.perf_counter(), time.process_time()
            n_frames += sum(int(batch.n_frames) for update in trainer.updates() for batch in update)
        spent = time.perf_counter() - clock, time.process_time() - processor
        return command.request.run.num_workers or 0, n_frames / spent[0], n_frames / spent[1]

    _, _, loading = feed("--num-workers", "0")
    n_workers, fed, training_process = feed()
    return n_workers, {"fed": fed, "loading": loading, "training_process": training_process}


def main(argv: Sequence[str] | None = None) -> None:
    """Make the features, feed them, and print where the time goes."""
    parser = ArgumentParser(prog="feed", description=f"{(__doc__ or '').splitlines()[0]} Other options go to train.py.")
    parser.add_argument("--utterances", type=int, default=2000, help="of the corpus")
    parser.add_argument("--epochs", type=int, default=3, help="that are timed, after one that is not")
    args, words = parser.parse_known_args(argv)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        n_workers, found = measure(words, Path(folder), utterances=args.utterances, epochs=args.epochs)
    rates = {
        "fed, on this machine as it is now": found["fed"],
        "loaded by one core": found["loading"],
        "taken by the training process": found["training_process"],
        f"fed, with {n_workers + 1} cores": min(n_workers * found["loading"], found["training_process"]),
    }
    print(f"{n_workers} loader processes on {machine(cuda=False)}, {os.cpu_count()} cores")
    print(*markdown([{"what": what, "frames/s": f"{rate:,.0f}"} for what, rate in rates.items()]), sep="\n")


if __name__ == "__main__":
    run(main)
