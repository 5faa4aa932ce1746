"""Writes a checkpoint of another implementation in this toolkit's format, recognized by what is in it.

    python -m scripts.convert_checkpoint g_02500000 vocoder.pt

The result speaks, transcribes and trains exactly as the source does in this toolkit.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from common.checkpoints import convert_checkpoint, save_checkpoint
from common.cli import ArgumentParser, run
from common.errors import OptionError


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = ArgumentParser(
        prog="convert_checkpoint.sh", description="Write a checkpoint of another implementation in this one's format."
    )
    parser.add_argument("source", type=Path, help="checkpoint of another implementation")
    parser.add_argument("target", type=Path, help="file to write, which must not exist yet")
    config = "the network's architecture, for a source that holds none: constructor arguments in JSON, config.json of "
    parser.add_argument("--config", type=Path, metavar="FILE", help=f"{config}HiFi-GAN's authors, or Jasper's YAML")
    other = "file of the discriminators of a HiFi-GAN whose name is not that of the generator's with do_ for g_"
    parser.add_argument("--discriminators", type=Path, metavar="FILE", help=other)
    partial = "convert what fits: weights that SOURCE lacks are as in a new network, others are left out, each listed"
    parser.add_argument("--partial", action="store_true", help=partial)
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Convert one checkpoint."""
    args = parse_args(argv)
    if args.target.exists():
        raise OptionError(f"{args.target}: exists already; name another TARGET, or remove it")
    conversion = convert_checkpoint(
        args.source, config=args.config, discriminators=args.discriminators, partial=args.partial
    )
    checkpoint = conversion.checkpoint
    save_checkpoint(args.target, checkpoint)
    how = f" ({', '.join(conversion.traits)})" if conversion.traits else ""
    print(f"recognized {args.source}: {checkpoint.layout}{how}")
    for line in conversion.changes:
        print(f"note: {line}")
    if checkpoint.assumed:
        print(f"note: not recorded of its mels, and taken to be as published: {', '.join(checkpoint.assumed)}")
    training = checkpoint.training
    parts = [
        f"networks {', '.join(checkpoint.networks)}",
        *(["EMA weights"] if checkpoint.has_ema else []),
        "no training state" if training is None else f"training state after epoch {training['epoch']}",
        f"{args.target.stat().st_size / 1e6:.1f} MB",
    ]
    print(f"wrote {args.target}: {checkpoint.model}, {', '.join(parts)}")


if __name__ == "__main__":
    run(main)
