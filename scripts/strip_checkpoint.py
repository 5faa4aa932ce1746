"""Writes what speaking or transcribing needs of a checkpoint: one network, with EMA weights if there are any.

    python -m scripts.strip_checkpoint output/HiFi-GAN_checkpoint_6500.pt --dtype bfloat16

Such a file is taken wherever a checkpoint is, but for resuming its training.
"""

from collections.abc import Sequence
from pathlib import Path

from common import checkpoints  # whose functions are imported when they are used, so that --help needs no PyTorch
from common.cli import ArgumentParser, run
from common.errors import OptionError


def main(argv: Sequence[str] | None = None) -> None:
    """Strip one checkpoint."""
    text = "Write what speaking or transcribing needs of a checkpoint alone."
    parser = ArgumentParser(prog="strip_checkpoint.sh", description=text)
    parser.add_argument("source", type=Path, help="checkpoint, ours or published")
    text = "file to write, which must not exist yet (default: SOURCE's name with _inference in place of _checkpoint)"
    parser.add_argument("target", type=Path, nargs="?", help=text)
    text = "of matrices and kernels; they are computed with in float32, or as --amp says"
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="float32", help=text)
    args = parser.parse_args(argv)
    name = args.source.stem.replace("_checkpoint", "_inference")  # no checkpoint to resume from is called so
    target = args.target or args.source.with_name(f"{name}{'' if '_inference' in name else '_inference'}.pt")
    if target.exists():
        raise OptionError(f"{target}: exists already; name another TARGET, or remove it")
    checkpoint = checkpoints.load_checkpoint(args.source, training=False)
    checkpoints.check_fit(checkpoint, where=str(args.source))
    stripped = checkpoints.strip_checkpoint(checkpoint, dtype=args.dtype)
    checkpoints.save_checkpoint(target, stripped)
    weights = f"{'EMA ' if checkpoint.has_ema else ''}weights in {args.dtype}"
    sizes = [f"{path.stat().st_size / 1e6:.1f} MB" for path in (args.source, target)]
    print(f"wrote {target}: {stripped.model}'s {next(iter(stripped.networks))}, {weights}, {sizes[1]} of {sizes[0]}")


if __name__ == "__main__":
    run(main)
