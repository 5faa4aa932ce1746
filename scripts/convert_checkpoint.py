"""Writes a checkpoint of another implementation in this toolkit's format, recognized by what is in it.

    python -m scripts.convert_checkpoint g_02500000 vocoder.pt

The result speaks, transcribes and trains exactly as the source does in this toolkit.
"""

from collections.abc import Sequence
from pathlib import Path

from common import checkpoints  # whose functions are imported when they are used, so that --help needs no PyTorch
from common.checkpoints.options import ConversionOptions
from common.cli import ArgumentParser, run
from common.errors import OptionError
from common.options import add_options, read_options


def main(argv: Sequence[str] | None = None) -> None:
    """Convert one checkpoint."""
    text = "Write a checkpoint of another implementation in this one's format."
    parser = ArgumentParser(prog="convert_checkpoint.sh", description=text)
    parser.add_argument("source", type=Path, help="checkpoint of another implementation")
    parser.add_argument("target", type=Path, help="file to write, which must not exist yet")
    add_options(parser, ConversionOptions)
    args = parser.parse_args(argv)
    if args.target.exists():
        raise OptionError(f"{args.target}: exists already; name another TARGET, or remove it")
    checkpoint, changes = checkpoints.convert_checkpoint(args.source, read_options(args, ConversionOptions))
    checkpoints.save_checkpoint(args.target, checkpoint)
    print(f"recognized {args.source}: {checkpoint.layout}")
    for line in changes:
        print(f"note: {line}")
    if checkpoint.assumed:
        print(f"note: not recorded of its mels, and taken to be as published: {', '.join(checkpoint.assumed)}")
    training = checkpoint.training
    epoch = "no training state" if training is None else f"training state after epoch {training['epoch']}"
    networks = f"networks {', '.join(checkpoint.networks)}{', EMA weights' if checkpoint.has_ema else ''}"
    print(f"wrote {args.target}: {checkpoint.model}, {networks}, {epoch}, {args.target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    run(main)
