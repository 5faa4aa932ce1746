"""Makes a vocoder with random weights and a list of random mels, to measure how fast it speaks, and nothing else.

    python -m scripts.benchmarks.random_vocoder v1 output/benchmark_inference
    python -m scripts.benchmarks.random_vocoder 256 output/benchmark_inference --model WaveGlow

writes there ``HiFi-GAN_v1.pt`` or ``WaveGlow_256.pt``, ``random_mels/*.pt`` and ``random_mels.tsv``. Trained weights
take the same time.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import models
from common.checkpoints.checkpoint import Checkpoint, save_checkpoint
from common.cli import ArgumentParser, positive_int, run
from common.config import AudioConfig, to_plain
from common.errors import OptionError
from common.files import save_tensor, write_json, write_text

# The mels that published models read, and the fields of them that their files do not record.
AUDIO = {"HiFi-GAN": replace(AudioConfig(), framing="aligned", peak=0.95), "WaveGlow": AudioConfig()}
UNRECORDED = ("framing", "peak")
WAVEGLOW_CHANNELS = (256, 512)  # widths of published models
N_FRAMES = 693  # 8.05 s at 22050 Hz, what published benchmarks speak


def parse_args(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = ArgumentParser(description="make a vocoder with random weights, to measure its speed alone")
    parser.add_argument("kind", help="preset of HiFi-GAN (v1, v2, v3), or channels of WaveGlow (256, 512)")
    parser.add_argument("folder", type=Path, help="where the checkpoint, the mels and their list go")
    parser.add_argument("--model", choices=tuple(AUDIO), default="HiFi-GAN", help="what to make")
    parser.add_argument("--count", type=positive_int, default=8, help="mels")
    return parser.parse_args(argv)


def kinds(model: str) -> dict[str, Any]:
    """ModelConfig by the name of each kind of a vocoder."""
    package = models.get_package(model).model
    if model == "HiFi-GAN":
        return dict(package.PRESETS)
    return {str(width): package.ModelConfig(wn_channels=width) for width in WAVEGLOW_CHANNELS}


def make(kind: str, folder: Path, *, count: int, model: str = "HiFi-GAN") -> None:
    """Write the checkpoint, ``count`` mels and their list; the same every time.

    Raises:
        OptionError: the model has no such kind.
    """
    known = kinds(model)
    if kind not in known:
        raise OptionError(f"{model} {kind!r}: expected one of {', '.join(known)}")
    torch.manual_seed(0)
    networks = models.build_networks(model, known[kind], AUDIO[model], None, inference=True)
    weights = {name: network.state_dict() for name, network in networks.items()}
    checkpoint = Checkpoint(model, to_plain(known[kind]), AUDIO[model], None, weights, assumed=UNRECORDED)
    save_checkpoint(folder / f"{model}_{kind}.pt", checkpoint)
    mels = folder / "random_mels"
    for place in range(count):
        save_tensor(mels / f"{place}.pt", torch.randn(AUDIO[model].n_mels, N_FRAMES) - 5)
    write_json(mels / "audio.json", to_plain(AUDIO[model]))
    lines = ["mel\toutput", *(f"{mels / str(place)}.pt\t{place}.wav" for place in range(count))]
    write_text(folder / "random_mels.tsv", "\n".join(lines) + "\n")
    print(f"{folder / model}_{kind}.pt has random weights: it measures speed alone")


def main() -> None:
    """Make what the options ask for."""
    args = parse_args()
    make(args.kind, args.folder, count=args.count, model=args.model)


if __name__ == "__main__":
    run(main)
