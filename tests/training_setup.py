"""What a command line of training means, as train.py reads it."""

from argparse import Namespace
from collections.abc import Sequence

from common.training.options import parse_command_line
from common.training.settings import TrainingSetup
from common.training.start import read_command


def set_up(*argv: str) -> TrainingSetup:
    """What the package of the command line's model makes of it."""
    command = read_command(parse_command_line(argv))
    return command.spec.training_setup.set_up(command.options, command.request)


def values(*argv: str) -> dict:
    """The values of all options, with those that files say of options that are left out."""
    return read_command(parse_command_line(argv)).values


def parsed(argv: Sequence[str]) -> Namespace:
    """The values of all options as they stand on the command line; no file is opened."""
    return parse_command_line(argv).args
