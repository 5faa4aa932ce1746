"""Compares ONNX in onnxruntime with PyTorch on the CPU, in turns within one process, float32, one utterance at once.

    python -m scripts.benchmarks.random_models output/benchmark --model HiFi-GAN --kind v1
    python -m scripts.benchmarks.exported output/benchmark/HiFi-GAN_v1.pt --length 300 --repeats 5

Both infer from the same input, tokens or mel frames. Seconds are medians; the ratio is the median over the turns, so
that a load on the machine slows both of its sides. Without a checkpoint a FastPitch of full size with random weights is
made, whose symbols are given six frames each.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from common.checkpoints import load_for_inference, open_checkpoint
from common.cli import ArgumentParser, positive_int, run
from common.config import AudioConfig
from common.errors import OptionError
from common.precision import keep_freed_memory
from common.registry import GeneratorSpec, VocoderSpec, get_model
from common.synthesis import Controls
from scripts import export_model
from scripts.benchmarks.machine import machine
from scripts.benchmarks.random_models import save_random
from scripts.benchmarks.table import markdown

FRAMES_PER_TOKEN = 6
_WARMUP = 2  # turns that are not counted


def inference_of(path: Path, length: int) -> Callable[[], Any]:
    """What infers from one random utterance of ``length`` tokens or frames, the same for a checkpoint and its export.

    Raises:
        OptionError: the model makes neither mels nor sound.
    """
    loaded = open_checkpoint(path)
    network, config = load_for_inference(loaded, device=torch.device("cpu"))
    generator, lengths = torch.Generator().manual_seed(0), torch.tensor([length])
    if isinstance(loaded.spec.inference, VocoderSpec):
        mel = torch.randn(1, loaded.checkpoint.audio.n_mels, length, generator=generator) - 5
        return lambda: network.infer(mel, None)
    if not isinstance(loaded.spec.inference, GeneratorSpec):
        raise OptionError(f"{path}: {loaded.spec.name} makes neither mels nor sound")
    tokens = torch.randint(1, config.n_symbols, (1, length), generator=generator)
    controls = Controls(durations=torch.full((1, length), float(FRAMES_PER_TOKEN)))
    return lambda: network.infer(tokens, lengths, controls).mel


def compare(ways: Sequence[Callable[[], Any]], *, repeats: int) -> list[list[float]]:
    """Seconds of each way in each turn, one after the other."""
    turns = []
    with torch.inference_mode():
        for _ in range(_WARMUP + repeats):
            seconds = []
            for infer in ways:
                started = time.perf_counter()
                infer()
                seconds.append(time.perf_counter() - started)
            turns.append(seconds)
    return turns[_WARMUP:]


def main(argv: Sequence[str] | None = None) -> None:
    """Export, and print the table."""
    parser = ArgumentParser(prog="exported.py", description="Time ONNX in onnxruntime against PyTorch.")
    parser.add_argument("checkpoints", type=Path, nargs="*", help="of voices and vocoders")
    parser.add_argument("--length", type=positive_int, default=200, help="tokens of a voice, frames of a vocoder")
    parser.add_argument("--repeats", type=positive_int, default=7, help="turns")
    args = parser.parse_args(argv)
    keep_freed_memory()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkpoints = args.checkpoints
        if not checkpoints:
            save_random(folder / "FastPitch.pt", "FastPitch", get_model("FastPitch").config(), AudioConfig())
            checkpoints = [folder / "FastPitch.pt"]
        for path in checkpoints:
            target = folder / f"{path.stem}.onnx"
            export_model.main([str(path), "-o", str(target)])
            turns = compare([inference_of(one, args.length) for one in (path, target)], repeats=args.repeats)
            medians = [statistics.median(column) for column in zip(*turns)]
            ratio = statistics.median(ours / theirs for ours, theirs in turns)
            figures = dict(zip(("PyTorch, s", "ONNX, s"), (f"{value:.3f}" for value in medians)))
            rows.append({"model": path.stem, **figures, "times as fast": f"{ratio:.2f}"})
    print(f"{machine(cuda=False)}, {torch.get_num_threads()} threads, {args.length} tokens or frames")
    print("\n".join(markdown(rows)))


if __name__ == "__main__":
    run(main)
