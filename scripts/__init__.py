"""Commands and their shared parts; those in Python are started by `python -m scripts.name`."""

import sys

if sys.argv[0] == "-m":
    import common  # noqa: F401 (first, so that Ctrl-C ends the following imports quietly)
