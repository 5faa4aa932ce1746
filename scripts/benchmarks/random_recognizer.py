"""Makes a Jasper with random weights and recordings of noise with made-up transcripts, to measure speed alone.

    python -m scripts.benchmarks.random_recognizer output/benchmark --count 64 --max-duration 16.7

writes there ``Jasper_random.pt``, ``recordings/*.wav`` and the manifest ``random.json``. Trained weights and real
speech take the same time. Durations are spread like those of LibriSpeech's training utterances: few are short, most
lie near the longest.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

import models
from common.audio.wav import save_wav
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.cli import ArgumentParser, positive_float, positive_int, run
from common.config import to_plain
from common.files import write_atomically
from jasper.config import ModelConfig
from jasper.manifest import manifest_bytes
from jasper.yaml_config import CONFIGS, load_config

SHORTEST = 1.4  # s
LETTERS_A_SECOND = 14  # of LibriSpeech's transcripts, blanks included
LETTERS_A_WORD = 5


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = ArgumentParser(prog="random_recogniser", description="make a random Jasper and recordings of noise")
    parser.add_argument("folder", type=Path, help="where all of it goes")
    parser.add_argument(
        "--model-config",
        type=Path,
        default=CONFIGS / "jasper10x5dr_speedp-online_speca.yaml",
        help="YAML file of the network and its features",
    )
    parser.add_argument("--count", type=positive_int, default=64, help="recordings")
    parser.add_argument("--max-duration", type=positive_float, default=16.7, help="s, of the longest recording")
    parser.add_argument("--all-longest", action="store_true", help="give every recording that duration")
    parser.add_argument("--no-checkpoint", action="store_true", help="make the recordings alone")
    return parser.parse_args(argv)


def durations(count: int, longest: float, random: np.random.Generator) -> list[float]:
    """Seconds of ``count`` utterances, the first of them the longest."""
    shortest = min(SHORTEST, longest / 2)
    drawn = random.triangular(shortest, shortest + 0.9 * (longest - shortest), longest, size=count - 1)
    return [longest, *(float(value) for value in drawn)]


def make_recordings(folder: Path, seconds: Sequence[float], *, sampling_rate: int, random: np.random.Generator) -> None:
    """Write noise of so many seconds each, and the manifest."""
    items = []
    for number, duration in enumerate(seconds):
        n_samples = max(int(duration * sampling_rate), 1)
        noise = torch.from_numpy(0.1 * random.standard_normal(n_samples, dtype=np.float32)).clamp(-1, 1)
        name = f"recordings/{number:05d}.wav"
        save_wav(folder / name, noise, sampling_rate=sampling_rate, durable=False)
        n_words = max(round(duration * LETTERS_A_SECOND / (LETTERS_A_WORD + 1)), 1)
        letters = random.integers(ord("a"), ord("z") + 1, size=(n_words, LETTERS_A_WORD))
        transcript = " ".join("".join(map(chr, word)) for word in letters)
        items.append(
            {
                "transcript": transcript,
                "files": [{"fname": name, "speed": 1}],
                "original_duration": n_samples / sampling_rate,
            }
        )
    write_atomically(folder / "random.json", lambda file: file.write(manifest_bytes(items)))


def make_checkpoint(path: Path, config: ModelConfig) -> None:
    """Write a network with random weights, the same every time."""
    torch.manual_seed(0)
    networks = models.build_networks("Jasper", config, config.features.audio, None, inference=True)
    states = {name: network.state_dict() for name, network in networks.items()}
    save_checkpoint(path, Checkpoint("Jasper", to_plain(config), config.features.audio, None, states))


def main(argv: Sequence[str] | None = None) -> int:
    """Make all of it."""
    args = parse_args(argv)
    config = load_config(args.model_config).model
    random = np.random.default_rng(0)
    longest = args.max_duration
    seconds = [longest] * args.count if args.all_longest else durations(args.count, longest, random)
    make_recordings(args.folder, seconds, sampling_rate=config.features.sample_rate, random=random)
    if not args.no_checkpoint:
        make_checkpoint(args.folder / "Jasper_random.pt", config)
    return 0


if __name__ == "__main__":
    run(main)
