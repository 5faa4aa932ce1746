"""Train a model: `python train.py -m FastPitch -o output -d data --training-files LIST --validation-files LIST`."""

from collections.abc import Sequence

from common.cli import ArgumentParser, run
from common.registry import available_models, get_model
from common.training.options import build_training_parser, parse_command_line


def build_parser(model: str = "") -> ArgumentParser:
    """Build the parser for training ``model``, by default the first one."""
    return build_training_parser(get_model(model or available_models()[0]))


def main(argv: Sequence[str] | None = None) -> int:
    """Train; return exit status 0 at the end, or 128 + the signal's number if a signal stopped the run early."""
    args, given = parse_command_line(argv)
    from common.training.start import train  # here, so that --help doesn't import PyTorch

    return train(args, given)


if __name__ == "__main__":
    run(main)
