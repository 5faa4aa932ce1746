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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.checkpoints import load_for_inference, open_checkpoint
from common.cli import ArgumentParser, run
from common.errors import InputError
from common.options import add_options, option, read_options
from common.precision import ComputingOptions, autocast
from common.timing import take_turns
from hifigan.config import ModelConfig
from scripts.benchmarks.measuring import Row, machine, markdown
from scripts.benchmarks.random_models import KINDS, N_FRAMES, make_vocoder

TOLERANCE = 1e-4  # largest difference between samples of two float32 ways
BASELINE = "the original's layers"
_WARMUP = 2  # turns that are not counted


class PlainBlock(nn.Module):
    """One residual block of kind "1" (pairs of convolutions) or "2", with the names of ours."""

    def __init__(self, kind: str, n_channels: int, kernel_size: int, dilations: Sequence[int]) -> None:
        super().__init__()
        convs = nn.ModuleList(_same_conv(n_channels, kernel_size, dilation) for dilation in dilations)
        self.pairs = kind == "1"
        if self.pairs:
            self.convs1 = convs
            self.convs2 = nn.ModuleList(_same_conv(n_channels, kernel_size, 1) for _ in dilations)
        else:
            self.convs = convs

    def forward(self, x: Tensor) -> Tensor:
        """x (B, C, T) -> (B, C, T)."""
        for layers in zip(self.convs1, self.convs2) if self.pairs else zip(self.convs):
            value = x
            for layer in layers:
                value = layer(F.leaky_relu(value, 0.1))
            x = value + x
        return x


class PlainGenerator(nn.Module):
    """The generator of arXiv:2010.05646, section 2.2, without weight norm, with the names of ours."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.upsample_initial_channel
        self.conv_pre = nn.Conv1d(config.n_mel_channels, width, 7, padding=3)
        self.ups, self.resblocks = nn.ModuleList(), nn.ModuleList()
        for rate, kernel_size in zip(config.upsample_rates, config.upsample_kernel_sizes):
            self.ups.append(nn.ConvTranspose1d(width, width // 2, kernel_size, rate, (kernel_size - rate) // 2))
            width //= 2
            shapes = zip(config.resblock_kernel_sizes, config.resblock_dilation_sizes)
            self.resblocks.append(nn.ModuleList(PlainBlock(config.resblock, width, *shape) for shape in shapes))
        self.conv_post = nn.Conv1d(width, 1, 7, padding=3)

    def forward(self, mel: Tensor) -> Tensor:
        """mel (B, n_mels, F) -> wave (B, F * hop)."""
        x = self.conv_pre(mel)
        for up, blocks in zip(self.ups, self.resblocks):
            x = up(F.leaky_relu(x, 0.1))
            total = blocks[0](x)
            for block in blocks[1:]:
                total = total + block(x)
            x = total / len(blocks)
        return torch.tanh(self.conv_post(F.leaky_relu(x))).squeeze(1)


def _same_conv(n_channels: int, kernel_size: int, dilation: int) -> nn.Conv1d:
    padding = (kernel_size - 1) * dilation // 2
    return nn.Conv1d(n_channels, n_channels, kernel_size, dilation=dilation, padding=padding)


@dataclass(frozen=True)
class ComparisonOptions(ComputingOptions):
    """What is compared, and how often."""

    kind: str = option("v1", "of the random weights", choices=KINDS["HiFi-GAN"][1])
    repeats: int = option(10, "turns that count", least=1)


def compare(ways: dict[str, Callable[[], Tensor]], *, repeats: int, duration: float) -> list[Row]:
    """The table's rows of ways to make sound of ``duration`` seconds, each compared with the first one.

    Raises:
        InputError: the second way, which computes in float32 too, differs.
    """
    with torch.inference_mode():
        waves = [synthesize() for synthesize in ways.values()]
        differences = [float((wave - waves[0]).abs().max()) for wave in waves]
        if not differences[1] < TOLERANCE:
            raise InputError(f"samples differ by {differences[1]:.1e} from {BASELINE}'s")
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
    add_options(parser, ComparisonOptions)
    args = parser.parse_args(argv)
    options = read_options(args, ComparisonOptions)
    precision = options.precision()
    precision.prepare_process()
    with tempfile.TemporaryDirectory() as folder:
        path = args.checkpoint or make_vocoder(Path(folder), "HiFi-GAN", options.kind, count=1)
        opened = open_checkpoint(path, model="HiFi-GAN", ema=True)
    network, config = load_for_inference(opened, device=precision.device)
    plain = PlainGenerator(config).to(precision.device)
    plain.load_state_dict(network.state_dict())
    audio = opened.checkpoint.audio
    mel = (torch.randn(1, audio.n_mels, N_FRAMES, generator=torch.Generator().manual_seed(0)) - 5).to(precision.device)

    def ours(dtype: torch.dtype | None) -> Tensor:
        with autocast(precision.device, dtype):
            return network.infer(mel).float()

    ways: dict[str, Callable[[], Tensor]] = {f"{BASELINE}, float32": lambda: plain(mel)}
    ways["this toolkit, float32"] = lambda: ours(None)
    if precision.amp_dtype is not None:
        ways[f"this toolkit, {str(precision.amp_dtype).removeprefix('torch.')}"] = lambda: ours(precision.amp_dtype)
    duration = N_FRAMES * audio.hop_length / audio.sampling_rate
    rows = compare(ways, repeats=options.repeats, duration=duration)
    print(f"{path.stem}, batch 1, {duration:.2f} s of sound; {machine(cuda=options.cuda)}")
    print(*markdown(rows), sep="\n")


if __name__ == "__main__":
    run(main)
