"""Commands and what they share; the ones in Python are started by `python -m scripts.name`."""

import sys

if sys.argv[0] == "-m":
    import common  # noqa: F401 (first of all: it lets Ctrl-C end the imports that follow quietly)
