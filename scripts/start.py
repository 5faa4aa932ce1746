"""Starts a script: ``python -m scripts.start train --resume``."""

import os
import sys

from common.cli import run
from scripts import benchmarking, corpora, speaking, train, training  # noqa: F401 (they declare the scripts)
from scripts.launch import SCRIPTS


def main() -> int:
    """Start the script that the first word names, with the others as its arguments."""
    name, *words = sys.argv[1:]
    SCRIPTS[name].start(dict(os.environ), words)
    return 0


if __name__ == "__main__":
    run(main)
