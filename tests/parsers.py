"""The parser of any program of the project, as its ``--help`` shows it."""

import argparse
import importlib
import sys
from contextlib import suppress
from functools import cache
from unittest.mock import patch

from common.cli import ArgumentParser


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
