"""Train a model: `python train.py -m FastPitch -o output -d data --training-files LIST --validation-files LIST`."""

from collections.abc import Sequence

from common.cli import ArgumentParser, run
from common.registry import available_models, get_model
from common.training.options import build_training_parser, parse_command_line


def build_parser(model: str = "") -> ArgumentParser:
    """The options of training a model, by default the first."""
    return build_training_parser(get_model(model or available_models()[0]))


def main(argv: Sequence[str] | None = None) -> int:
    """Train; exit status 0 at the end, 128 + the signal's number if one stopped the run early."""
    line = parse_command_line(argv)
    from common.training.start import train  # after --help and wrong options, as PyTorch takes seconds to load

    return train(line)


if __name__ == "__main__":
    run(main)
