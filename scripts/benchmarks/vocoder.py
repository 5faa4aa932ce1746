"""Compares HiFi-GAN's synthesis with the layers of its paper as PyTorch has them, in turns within one process.

    bash scripts/benchmark.sh vocoder --kind v1 --repeats 10 --amp
    bash scripts/benchmark.sh vocoder vocoder.pt

The baseline is the original's way of computing, at its best: one-dimensional convolutions in the layout that PyTorch
gives them, no masks, weight norm removed, in inference mode, and memory kept for the next tensors as ours is. All ways
synthesize the same 8.05 s from the same weights. Seconds are medians; a ratio is the median over the turns, so that a
load on the machine slows both of its sides.
"""

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from common.checkpoints.loading import load_for_inference, open_checkpoint
from common.cli import ArgumentParser, ComputingOptions, run
from common.options import add_options, read_options
from common.precision import Precision, prepare_computing
from common.timing import take_turns
from hifigan.config import PRESETS, ModelConfig
from scripts.benchmarks.random_models import N_FRAMES, configure, save_random
from scripts.benchmarks.table import Row, machine, markdown

BASELINE = "the original's layers"
_WARMUP = 2  # turns that are not counted


def paper_generator(mel: Tensor, weights: Mapping[str, Tensor], config: ModelConfig) -> Tensor:
    """The generator of arXiv:2010.05646, section 2.2, of ``weights`` without weight norm, with the names of ours.

    mel (B, n_mels, F) -> wave (B, F * hop).
    """

    def conv(x: Tensor, name: str, dilation: int = 1) -> Tensor:
        weight = weights[f"{name}.weight"]
        padding = (weight.size(2) - 1) * dilation // 2
        return F.conv1d(x, weight, weights[f"{name}.bias"], padding=padding, dilation=dilation)

    def block(x: Tensor, name: str, dilations: Sequence[int]) -> Tensor:
        first = "convs1" if config.resblock == "1" else "convs"
        for index, dilation in enumerate(dilations):
            value = conv(F.leaky_relu(x, 0.1), f"{name}.{first}.{index}", dilation)
            if config.resblock == "1":
                value = conv(F.leaky_relu(value, 0.1), f"{name}.convs2.{index}")
            x = value + x
        return x

    x = conv(mel, "conv_pre")
    for stage, (rate, kernel_size) in enumerate(zip(config.upsample_rates, config.upsample_kernel_sizes)):
        weight, bias = weights[f"ups.{stage}.weight"], weights[f"ups.{stage}.bias"]
        x = F.conv_transpose1d(F.leaky_relu(x, 0.1), weight, bias, rate, (kernel_size - rate) // 2)
        shapes = enumerate(config.resblock_dilation_sizes)
        blocks = (block(x, f"resblocks.{stage}.{index}", dilations) for index, dilations in shapes)
        x = reduce(torch.add, blocks) / len(config.resblock_dilation_sizes)
    return torch.tanh(conv(F.leaky_relu(x), "conv_post")).squeeze(1)


def compare(ways: dict[str, Callable[[], Tensor]], *, repeats: int, duration: float) -> list[Row]:
    """The table's rows of ways to make sound of ``duration`` seconds, each compared with the first one."""
    with torch.inference_mode():
        waves = [synthesize() for synthesize in ways.values()]
        differences = [float((wave - waves[0]).abs().max()) for wave in waves]
        turns = take_turns([lambda own=own: own().cpu() for own in ways.values()], _WARMUP + repeats)
    seconds = list(zip(*turns[_WARMUP:]))
    return [
        {
            "Way": name,
            "Seconds": f"{statistics.median(times):.3f}",
            "x real time": f"{duration / statistics.median(times):.2f}",
            "Ratio": f"{statistics.median(base / one for base, one in zip(seconds[0], times)):.2f}",
            "Largest difference": f"{difference:.0e}",
        }
        for name, times, difference in zip(ways, seconds, differences)
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = ArgumentParser(prog="vocoder", description="compare HiFi-GAN's synthesis with its paper's layers")
    parser.add_argument("checkpoint", type=Path, nargs="?", help="of HiFi-GAN; without it random weights")
    parser.add_argument("--kind", choices=tuple(PRESETS), default="v1", help="of the random weights")
    parser.add_argument("--repeats", type=int, default=10, help="turns that count")
    add_options(parser, ComputingOptions)
    args = parser.parse_args(argv)
    precision = prepare_computing(read_options(args, ComputingOptions))
    with tempfile.TemporaryDirectory() as folder:
        path = args.checkpoint or Path(folder) / f"HiFi-GAN_{args.kind}.pt"
        if args.checkpoint is None:
            save_random(path, "HiFi-GAN", *configure("HiFi-GAN", ["--preset", args.kind]))
        opened = open_checkpoint(path, model="HiFi-GAN", ema=True)
    network, config = load_for_inference(opened, device=precision.device)
    weights = network.state_dict()
    audio = opened.checkpoint.audio
    mel = (torch.randn(1, audio.n_mels, N_FRAMES, generator=torch.Generator().manual_seed(0)) - 5).to(precision.device)

    def ours(dtype: torch.dtype | None) -> Tensor:
        with Precision(precision.cuda, dtype).autocast():
            return network.infer(mel).float()

    ways: dict[str, Callable[[], Tensor]] = {f"{BASELINE}, float32": lambda: paper_generator(mel, weights, config)}
    ways["this toolkit, float32"] = lambda: ours(None)
    if precision.amp_dtype is not None:
        ways[f"this toolkit, {str(precision.amp_dtype).removeprefix('torch.')}"] = lambda: ours(precision.amp_dtype)
    duration = N_FRAMES * audio.hop_length / audio.sampling_rate
    rows = compare(ways, repeats=args.repeats, duration=duration)
    print(f"{path.stem}, batch 1, {duration:.2f} s of sound; {machine(cuda=args.cuda)}")
    print(*markdown(rows), sep="\n")


if __name__ == "__main__":
    run(main)
