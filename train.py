"""Train a model: `python train.py -m FastPitch -o output -d data --training-files LIST --validation-files LIST`."""

from collections.abc import Sequence

from common.cli import run
from common.training.options import parser_of


def main(argv: Sequence[str] | None = None) -> int:
    """Train; exit status 0 at the end, 128 + the signal's number if one stopped the run early."""
    parser_of(argv)[0].parse_args(argv)  # which ends --help and wrong options at once: PyTorch takes seconds to load
    from common.training.start import train

    return train(argv)


if __name__ == "__main__":
    run(main)
