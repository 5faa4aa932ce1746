"""Makes a model with random weights, and noise for it, to measure speed alone: trained weights take the same time.

    python -m scripts.benchmarks.random_models output/benchmark --model HiFi-GAN --kind v1
    python -m scripts.benchmarks.random_models output/benchmark --model Jasper --count 64 --max-duration 16.7

writes for a vocoder ``HiFi-GAN_v1.pt``, ``random_mels/*.pt`` and their list ``random_mels.tsv``; for Jasper
``Jasper_random.pt``, recordings ``wav/*.wav`` with made-up transcripts, and their list ``list.txt``; for FastPitch
``FastPitch_random.pt``, which speaks every letter for 6 frames, near the 5.7 of real speech.
"""

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch

from common.checkpoints import Checkpoint, save_checkpoint
from common.cli import ArgumentParser, positive_float, positive_int, run
from common.config import AudioConfig, TextConfig, to_plain
from common.errors import OptionError
from common.files import write_json, write_text
from common.registry import get_model
from common.torch_file import save_tensor
from scripts.benchmarks.subjects import configure, durations, make_corpus

# The option of train.py that chooses a vocoder's kind, and the published ones.
KINDS = {
    "HiFi-GAN": ("--preset", ("v1", "v2", "v3")),
    "WaveGlow": ("--wn-channels", ("256", "512")),
    "Harmonic": ("--channels", ("256",)),
}
RECOGNIZER = "Jasper"
VOICE = "FastPitch"
_FRAMES_A_LETTER = 6
UNRECORDED = ("framing", "peak")  # fields of the audio that published files of vocoders do not record
N_FRAMES = 693  # 8.05 s at 22050 Hz, as in published benchmarks


def make_vocoder(folder: Path, model: str, kind: str | None, *, count: int) -> None:
    """Write the checkpoint, ``count`` mels and their list, the same every time; raises OptionError for another kind."""
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


def make_recognizer(folder: Path, args: argparse.Namespace) -> None:
    """Write recordings, and the checkpoint unless the options leave it out."""
    config, audio = configure(RECOGNIZER, ["--model-config", args.model_config] if args.model_config else [])
    rate, longest = audio.sampling_rate, args.max_duration
    seconds = [longest] * args.count if args.all_longest else durations(args.count, longest, np.random.default_rng(0))
    make_corpus(folder, [round(rate * value) for value in seconds], ("wav", "text"), sampling_rate=rate, seed=0)
    if not args.no_checkpoint:
        save_random(folder / f"{RECOGNIZER}_random.pt", RECOGNIZER, config, audio)


def make_voice(folder: Path) -> Path:
    """Write the checkpoint of a voice that reads letters, of full size; returns its path."""
    text = TextConfig(cleaners=("basic_cleaners",))
    last = "duration_predictor.fc"  # predicts log(1 + frames)
    fixed = {f"{last}.weight": 0.0, f"{last}.bias": math.log1p(_FRAMES_A_LETTER)}
    path = folder / f"{VOICE}_random.pt"
    save_random(path, VOICE, get_model(VOICE).config(), AudioConfig(), text=text, fixed=fixed)
    return path


def save_random(
    path: Path,
    model: str,
    config: object,
    audio: AudioConfig,
    *,
    text: TextConfig | None = None,
    assumed: tuple[str, ...] = (),
    fixed: Mapping[str, float] = MappingProxyType({}),
) -> None:
    """Write a checkpoint for inference with random weights, the same every time, and ``fixed`` ones by their names.

    ``assumed`` is as in `Checkpoint`.
    """
    torch.manual_seed(0)
    networks = get_model(model).build_networks(config, audio, text, inference=True)
    weights = {name: network.state_dict() for name, network in networks.items()}
    for name, value in fixed.items():
        next(iter(weights.values()))[name].fill_(value)
    save_checkpoint(path, Checkpoint(model, to_plain(config), audio, text, weights, assumed=assumed))


def main(argv: Sequence[str] | None = None) -> None:
    """Make what the options ask for."""
    parser = ArgumentParser(prog="random_models", description="make a model with random weights, and noise for it")
    parser.add_argument("folder", type=Path, help="where all of it goes")
    parser.add_argument("--model", choices=(*KINDS, VOICE, RECOGNIZER), default="HiFi-GAN", help="what to make")
    parser.add_argument("--kind", help="HiFi-GAN (v1, v2, v3), or channels: WaveGlow (256, 512), Harmonic (256)")
    parser.add_argument("--count", type=positive_int, default=8, help="mels or recordings")
    parser.add_argument("--model-config", help="YAML file of Jasper and its features; as published if not given")
    parser.add_argument("--max-duration", type=positive_float, default=16.7, help="s, of the longest recording")
    parser.add_argument("--all-longest", action="store_true", help="give every recording that duration")
    parser.add_argument("--no-checkpoint", action="store_true", help="make the recordings alone")
    args = parser.parse_args(argv)
    if args.model == RECOGNIZER:
        make_recognizer(args.folder, args)
    elif args.model == VOICE:
        make_voice(args.folder)
    else:
        make_vocoder(args.folder, args.model, args.kind, count=args.count)


if __name__ == "__main__":
    run(main)
