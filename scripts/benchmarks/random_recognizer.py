"""Makes a Jasper with random weights and recordings of noise with made-up transcripts, to measure speed alone.

    python -m scripts.benchmarks.random_recognizer output/benchmark --count 64 --max-duration 16.7

writes there ``Jasper_random.pt``, ``wav/*.wav`` and their list ``list.txt``. Trained weights and real speech
take the same time.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common.cli import ArgumentParser, positive_float, positive_int, run
from scripts.benchmarks.subjects import configure, durations, make_corpus, save_random

MODEL = "Jasper"


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = ArgumentParser(prog="random_recognizer", description="make a random Jasper and recordings of noise")
    parser.add_argument("folder", type=Path, help="where all of it goes")
    parser.add_argument("--model-config", help="YAML file of the network and its features; as published if not given")
    parser.add_argument("--count", type=positive_int, default=64, help="recordings")
    parser.add_argument("--max-duration", type=positive_float, default=16.7, help="s, of the longest recording")
    parser.add_argument("--all-longest", action="store_true", help="give every recording that duration")
    parser.add_argument("--no-checkpoint", action="store_true", help="make the recordings alone")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Make all of it."""
    args = parse_args(argv)
    longest = args.max_duration
    config, audio = configure(MODEL, [] if args.model_config is None else ["--model-config", args.model_config])
    rate = audio.sampling_rate
    seconds = durations(args.count, longest, np.random.default_rng(0))
    lengths = [round(rate * (longest if args.all_longest else value)) for value in seconds]
    make_corpus(args.folder, lengths, ("wav", "text"), sampling_rate=rate, seed=0)
    if not args.no_checkpoint:
        save_random(args.folder / f"{MODEL}_random.pt", MODEL, config, audio)
    return 0


if __name__ == "__main__":
    run(main)
