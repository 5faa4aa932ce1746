"""Makes a HiFi-GAN with random weights and a list of random mels, to measure how fast it speaks, and nothing else.

    python -m scripts.random_vocoder v1 output/benchmark_inference

writes there ``HiFi-GAN_v1.pt``, ``random_mels/*.pt`` and ``random_mels.tsv``. Trained weights take the same time.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import torch

import models
from common.checkpoint import Checkpoint, save_checkpoint
from common.cli import ArgumentParser, positive_int, run
from common.config import AudioConfig, to_plain
from common.files import save_tensor, write_json, write_text

MODEL = "HiFi-GAN"
AUDIO = replace(AudioConfig(), framing="aligned", peak=0.95)
N_FRAMES = 693  # 8.05 s at 22050 Hz, what published benchmarks speak


def parse_args() -> argparse.Namespace:
    """The options."""
    presets = models.get_package(MODEL).model.PRESETS
    parser = ArgumentParser(description="make a HiFi-GAN with random weights, to measure its speed alone")
    parser.add_argument("preset", choices=presets, help="of the authors' three")
    parser.add_argument("folder", type=Path, help="where the checkpoint, the mels and their list go")
    parser.add_argument("--count", type=positive_int, default=8, help="mels")
    return parser.parse_args()


def make(preset: str, folder: Path, *, count: int) -> None:
    """Write the checkpoint, ``count`` mels and their list; the same every time."""
    torch.manual_seed(0)
    config = models.get_package(MODEL).model.PRESETS[preset]
    networks = models.build_networks(MODEL, config, AUDIO, None, inference=True)
    weights = {name: network.state_dict() for name, network in networks.items()}
    checkpoint = Checkpoint(MODEL, to_plain(config), AUDIO, None, weights, assumed=("framing", "peak"))
    save_checkpoint(folder / f"{MODEL}_{preset}.pt", checkpoint)
    mels = folder / "random_mels"
    for place in range(count):
        save_tensor(mels / f"{place}.pt", torch.randn(AUDIO.n_mels, N_FRAMES) - 5)
    write_json(mels / "audio.json", to_plain(AUDIO))
    lines = ["mel\toutput", *(f"{mels / str(place)}.pt\t{place}.wav" for place in range(count))]
    write_text(folder / "random_mels.tsv", "\n".join(lines) + "\n")
    print(f"{folder / MODEL}_{preset}.pt has random weights: it measures speed alone")


def main() -> None:
    """Make what the options ask for."""
    args = parse_args()
    make(args.preset, args.folder, count=args.count)


if __name__ == "__main__":
    run(main)
