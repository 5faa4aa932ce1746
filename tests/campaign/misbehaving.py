"""A command that breaks each promise by name, to show that the harness notices."""

import mmap
import signal
import subprocess
import sys
from pathlib import Path

from common.errors import InputError, OptionError


def _say(text: str) -> int:
    print(f"error: {text}", file=sys.stderr)
    return 1


def _refuse(message: str, *, kind: type[InputError] = InputError) -> int:
    raise kind(message)


def _memory(size: int) -> int:
    data = mmap.mmap(-1, size)
    return _refuse(f"{len(data)} bytes")


def _write(path: str) -> int:
    Path(path).write_text("x")
    return _refuse("a file")


def _print(text: str) -> int:
    print(text)
    return _refuse("text")


def _warn(text: str) -> int:
    print(text, file=sys.stderr)
    return _refuse("text")


def _wait() -> int:
    signal.pause()
    return 0


def _spin() -> int:
    while True:
        pass


def _leave_behind() -> int:
    subprocess.Popen(["sleep", "1000"])
    return _refuse("a process")


BREACHES = {  # what `harness.problems` says -> what does it
    "traceback: ValueError": lambda: int("x"),
    "0 lines of error": lambda: 1,
    "2 lines of error": lambda: _say("one\nerror: two"),
    "status 2 instead of 1": lambda: _refuse("an option", kind=OptionError),
    "accepted without a word": lambda: 0,
    "undocumented line: chatter": lambda: _warn("chatter"),
    "memory": lambda: _memory(2200 << 20),
    "an error of 5007 characters": lambda: _say("x" * 5000),
    "prints the raw byte": lambda: _say("\x1b[31m"),
    "a payload ran": lambda: _print("payload-ran-" * 3),
    "writes outside its output: stray": lambda: _write("stray"),
    "processes left behind": _leave_behind,
    "waits for ever": _wait,
    "status -24": _spin,
}


def main() -> int | None:
    """Do what the command line names."""
    breach = BREACHES.get(sys.argv[1], lambda: _refuse("a clear line"))
    return breach()
