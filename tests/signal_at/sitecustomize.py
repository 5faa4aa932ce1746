"""Signals a program at one of its own writes; ``kills.Forked`` runs this first.

``SIGNAL_AT`` is a signal's number, an audit event ("open" for writing or "os.rename"), which one of them counts, the
folder that they are in, whether the whole group is signaled, or the process alone that was started first, whichever of
its processes writes, and files to remove: one for each signal.
"""

import itertools
import json
import os
import sys
from pathlib import Path
from typing import Any

number, event, count, folder, group, tokens = json.loads(os.environ["SIGNAL_AT"])
program = int(os.environ.setdefault("SIGNAL_TO", str(os.getpid())))
events = itertools.count(1)


def signal_at_the_last(name: str, args: tuple[Any, ...]) -> None:
    """Count an event; the last one that counts is prevented where the signal kills."""
    if name != event or (name == "open" and not args[2] & (os.O_WRONLY | os.O_RDWR)):
        return
    if str(args[name == "os.rename"]).startswith(folder) and next(events) == count:
        for token in tokens:
            try:
                Path(token).unlink()
            except FileNotFoundError:  # another process has sent this one
                continue
            (os.killpg if group else os.kill)(program, number)
            return


sys.addaudithook(signal_at_the_last)
