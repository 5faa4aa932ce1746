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
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.checkpoints import LoadedCheckpoint, load_for_inference, open_checkpoint
from common.cli import ArgumentParser, add_precision_arguments, positive_int, precision_from_args, run
from common.errors import InputError
from common.precision import autocast
from common.timing import take_turns
from hifigan.config import ModelConfig
from scripts.benchmarks.machine import machine
from scripts.benchmarks.random_models import KINDS, N_FRAMES, make_vocoder
from scripts.benchmarks.table import markdown

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


def seconds_of(ways: dict[str, Callable[[], Tensor]], repeats: int) -> dict[str, list[float]]:
    """Seconds of each way in each of ``repeats`` turns; every one of them ends with its samples on the CPU."""
    turns = take_turns([lambda own=own: own().cpu() for own in ways.values()], _WARMUP + repeats)
    return {name: list(column) for name, column in zip(ways, zip(*turns[_WARMUP:]))}


def open_vocoder(path: Path | None, kind: str) -> LoadedCheckpoint:
    """Open a checkpoint, or where none is given one of that kind with random weights."""
    if path is not None:
        return open_checkpoint(path, model="HiFi-GAN", ema=True)
    with tempfile.TemporaryDirectory() as folder:
        make_vocoder(Path(folder), "HiFi-GAN", kind, count=1)
        return open_checkpoint(Path(folder) / f"HiFi-GAN_{kind}.pt", model="HiFi-GAN", ema=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = ArgumentParser(prog="vocoder", description="compare HiFi-GAN's synthesis with its paper's layers")
    parser.add_argument("checkpoint", type=Path, nargs="?", help="of HiFi-GAN; without it random weights")
    parser.add_argument("--kind", choices=KINDS["HiFi-GAN"][1], default="v1", help="of the random weights")
    parser.add_argument("--repeats", type=positive_int, default=10, help="turns that count")
    add_precision_arguments(parser)
    args = parser.parse_args(argv)
    precision = precision_from_args(args)
    precision.prepare_process()
    loaded = open_vocoder(args.checkpoint, args.kind)
    network, config = load_for_inference(loaded, device=precision.device)
    plain = PlainGenerator(config).to(precision.device)
    plain.load_state_dict(network.state_dict())
    audio = loaded.checkpoint.audio
    mel = (torch.randn(1, audio.n_mels, N_FRAMES, generator=torch.Generator().manual_seed(0)) - 5).to(precision.device)

    def ours(dtype: torch.dtype | None) -> Tensor:
        with autocast(precision.device, dtype):
            return network.infer(mel).float()

    ways: dict[str, Callable[[], Tensor]] = {f"{BASELINE}, float32": lambda: plain(mel)}
    ways["this toolkit, float32"] = lambda: ours(None)
    if precision.amp_dtype is not None:
        ways[f"this toolkit, {str(precision.amp_dtype).removeprefix('torch.')}"] = lambda: ours(precision.amp_dtype)
    with torch.inference_mode():
        waves = [synthesize() for synthesize in ways.values()]
        differences = [float((wave - waves[0]).abs().max()) for wave in waves]
        if not differences[1] < TOLERANCE:
            raise InputError(f"{loaded.path}: samples differ by {differences[1]:.1e} from {BASELINE}'s")
        seconds = seconds_of(ways, args.repeats)
    duration = N_FRAMES * audio.hop_length / audio.sampling_rate
    print(f"{loaded.path.stem}, batch 1, {duration:.2f} s of sound; {machine(cuda=args.cuda)}")
    first = next(iter(seconds.values()))
    rows = [
        {
            "Way": name,
            "Seconds": f"{statistics.median(times):.3f}",
            "x real time": f"{duration / statistics.median(times):.2f}",
            "Ratio": f"{statistics.median(base / one for base, one in zip(first, times)):.2f}",
            "Largest difference": f"{difference:.0e}",
        }
        for (name, times), difference in zip(seconds.items(), differences)
    ]
    print(*markdown(rows), sep="\n")


if __name__ == "__main__":
    run(main)
