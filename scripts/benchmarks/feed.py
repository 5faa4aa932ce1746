"""Measures how many mel frames/s one training process is fed with: FastPitch 1.1's batches, from files to its memory.

    bash scripts/benchmark.sh feed [--num-workers 8] [--utterances 2000] [--batch-size 32] [--cuda]

Features of noise with lengths like LJSpeech's are written once, and then read from the page cache: mels, pitch, texts
and the aligner's priors. What is measured is train.py's own loader and sampler; on a GPU batches are copied through
page-locked memory. Time is that of processors, so that other work on the machine changes it little: of loading, which
is measured in this process, and of taking batches from loader processes. The figure "with so many cores" is for a
machine that has one for each process.
"""

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from common.cli import ArgumentParser, run
from common.config import AudioConfig
from common.distributed import Ranks
from common.options import add_options, option, read_options
from common.precision import check_cuda
from common.training.start import build_trainer, read_command
from scripts.benchmarks.random_models import LIST, draw_frames, make_corpus
from scripts.benchmarks.table import machine, markdown


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
    seed: int = option(1234, "of corpus and draws", least=0)


def measure(options: FeedOptions, folder: Path) -> dict[str, float]:
    """Feed a training on noise, written into ``folder``, for ``options.epochs`` after one that fills caches.

    Returns ``n_frames``, their ``seconds`` on the clock, and seconds of a core: of the ``training_process``, and of
    ``loading`` in all processes together.
    """
    audio, files = AudioConfig(), folder / LIST
    lengths = [audio.hop_length * frames for frames in draw_frames(options.utterances, "FastPitch", seed=options.seed)]
    columns = ("mel", "pitch", "text")
    make_corpus(folder, lengths, columns, sampling_rate=audio.sampling_rate, seed=options.seed)
    values = {"--output": folder / "output", "--dataset-path": folder, "--training-files": files}
    values |= {"--validation-files": files, "--seed": options.seed, "--length-buckets": options.length_buckets}
    values |= {"--batch-size": options.batch_size, "--gradient-accumulation-steps": options.accumulation}

    def feed(n_workers: int) -> tuple[int, float, float]:
        words = [str(word) for pair in (values | {"--num-workers": n_workers}).items() for word in pair]
        command = read_command([*words, "--learned-alignment", "--text-cleaners", "basic_cleaners"])
        setup = command.spec.training.set_up(command.options, command.request)
        ranks = Ranks(device=torch.device("cuda" if options.cuda else "cpu"))
        trainer, logger = build_trainer(command, setup, ranks, amp_dtype=None)
        logger.close()
        n_frames, clock, processor = 0, 0.0, 0.0
        for epoch in range(1 + options.epochs):
            if epoch == 1:
                n_frames, clock, processor = 0, time.perf_counter(), time.process_time()
            n_frames += sum(int(batch.n_frames) for update in trainer.updates() for batch in update)
        return n_frames, time.perf_counter() - clock, time.process_time() - processor

    _, _, loading = feed(0)
    n_frames, seconds, training_process = feed(options.num_workers)
    return {"n_frames": n_frames, "seconds": seconds, "training_process": training_process, "loading": loading}


def main(argv: Sequence[str] | None = None) -> None:
    """Make the features, feed them, and print where the time goes."""
    parser = ArgumentParser(prog="feed", description=(__doc__ or "").partition("\n")[0])
    add_options(parser, FeedOptions)
    options: FeedOptions = read_options(parser.parse_args(argv), FeedOptions)
    if options.cuda:
        check_cuda()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options, Path(folder))
    per_second = {name: found["n_frames"] / spent for name, spent in found.items() if name != "n_frames"}
    on_cores = min(options.num_workers * per_second["loading"], per_second["training_process"])
    rows = {
        "fed, on this machine as it is now": per_second["seconds"],
        "loaded by one core": per_second["loading"],
        "taken by the training process": per_second["training_process"],
        f"fed, with {options.num_workers + 1} cores": on_cores,
    }
    print(f"{options.num_workers} loader processes on {machine(cuda=False)}, {os.cpu_count()} cores")
    print(*markdown([{"what": what, "frames/s": f"{rate:,.0f}"} for what, rate in rows.items()]), sep="\n")


if __name__ == "__main__":
    run(main)
