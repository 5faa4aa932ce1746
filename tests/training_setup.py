"""What a command line means: as train.py reads it, and the parser that a program shows with --help."""

import argparse
import importlib
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from unittest.mock import patch

from common.cli import ArgumentParser
from common.training.options import parse_command_line
from common.training.settings import TrainingSetup
from common.training.start import read_command


def set_up(*argv: str) -> TrainingSetup:
    """What the package of the command line's model makes of it."""
    options, request = read_command(*parse_command_line(argv))
    return request.spec.training_setup.set_up(options, request)


def values(*argv: str) -> dict:
    """The values of all options, with those that files say of options that are left out."""
    return read_command(*parse_command_line(argv))[1].values


def parsed(argv: Sequence[str]) -> Namespace:
    """The values of all options as they stand on the command line; no file is opened."""
    return parse_command_line(argv)[0]


@cache
def parser_of(command: str) -> ArgumentParser:
    """The parser that `--help` after ``command`` describes: a module and the words that choose its options."""
    module, *words = command.split()
    with (
        patch.object(argparse.ArgumentParser, "print_help", autospec=True, side_effect=SystemExit) as print_help,
        patch.object(sys, "argv", [module, *words, "--help"]),
        suppress(SystemExit),
    ):
        importlib.import_module(module).main()
    assert print_help.called, f"{command}: --help shows no options"
    parser: ArgumentParser = print_help.call_args.args[0]
    return parser
