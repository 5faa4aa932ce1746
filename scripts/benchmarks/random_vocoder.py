"""Makes a vocoder with random weights and a list of random mels, to measure its speed, and nothing else.

    python -m scripts.benchmarks.random_vocoder v1 output/benchmark_inference
    python -m scripts.benchmarks.random_vocoder 256 output/benchmark_inference --model WaveGlow

writes there ``HiFi-GAN_v1.pt`` or ``WaveGlow_256.pt``, ``random_mels/*.pt`` and ``random_mels.tsv``. Trained weights
take the same time.
"""

from pathlib import Path

import torch

from common.cli import ArgumentParser, positive_int, run
from common.config import to_plain
from common.errors import OptionError
from common.files import save_tensor, write_json, write_text
from scripts.benchmarks.subjects import configure, save_random

# The option of train.py that chooses the kind, and the published ones.
KINDS = {"HiFi-GAN": ("--preset", ("v1", "v2", "v3")), "WaveGlow": ("--wn-channels", ("256", "512"))}
UNRECORDED = ("framing", "peak")  # fields of the audio that published files do not record
N_FRAMES = 693  # 8.05 s at 22050 Hz, as in published benchmarks


def make(kind: str, folder: Path, *, count: int, model: str = "HiFi-GAN") -> None:
    """Write the checkpoint, ``count`` mels and their list; the same every time.

    Raises:
        OptionError: the model has no such kind.
    """
    option, known = KINDS[model]
    if kind not in known:
        raise OptionError(f"{model} {kind!r}: expected one of {', '.join(known)}")
    config, audio = configure(model, [option, kind])
    save_random(folder / f"{model}_{kind}.pt", model, config, audio, assumed=UNRECORDED)
    mels = folder / "random_mels"
    for place in range(count):
        save_tensor(mels / f"{place}.pt", torch.randn(audio.n_mels, N_FRAMES) - 5)
    write_json(mels / "audio.json", to_plain(audio))
    lines = ["mel\toutput", *(f"{mels / str(place)}.pt\t{place}.wav" for place in range(count))]
    write_text(folder / "random_mels.tsv", "\n".join(lines) + "\n")
    print(f"{folder / model}_{kind}.pt has random weights: it measures speed alone")


def main() -> None:
    """Make what the options ask for."""
    parser = ArgumentParser(description="make a vocoder with random weights, to measure its speed alone")
    parser.add_argument("kind", help="preset of HiFi-GAN (v1, v2, v3), or channels of WaveGlow (256, 512)")
    parser.add_argument("folder", type=Path, help="where the checkpoint, the mels and their list go")
    parser.add_argument("--model", choices=tuple(KINDS), default="HiFi-GAN", help="what to make")
    parser.add_argument("--count", type=positive_int, default=8, help="mels")
    args = parser.parse_args()
    make(args.kind, args.folder, count=args.count, model=args.model)


if __name__ == "__main__":
    run(main)
