"""Errors that are for people: one line that says what is wrong, where, and what to do."""

import os
import reprlib
import signal
import sys
import threading
import time
from collections.abc import Collection
from pathlib import PurePath
from typing import Any

JOINED = threading.Event()  # set once this process works with others: from then on its errors may be its own
_SECONDS_TO_BE_ENDED = 10.0  # by torchrun, after another process has failed
_LONGEST_SHOWN = 100  # characters of a value in a message
_LONGEST_MESSAGE = 2000  # characters of a message, of which
_ENDING = 500  # are at its end, which says what to do


class InputError(Exception):
    """Bad input: a file, a list, a checkpoint or an utterance. Commands end with exit status 1."""


class OptionError(InputError):
    """Options that cannot be used or do not fit together. Commands end with exit status 2."""


class CheckpointError(InputError):
    """A checkpoint that cannot be read, is of another model, or does not fit this one."""


class AudioError(InputError):
    """An audio file that cannot be used: missing, truncated, of another rate, not mono, not finite."""


class OutputError(InputError):
    """A file or folder that cannot be written. Commands end with exit status 1."""


class FailedElsewhereError(Exception):
    """Another process of several has failed and says why; this one only has to end, with exit status 1."""


def check_choice(name: str, value: str | None, choices: Collection[str]) -> None:
    """Raise InputError unless ``value`` is one of ``choices``; ``name`` says what it is."""
    if value not in choices:
        raise InputError(f"{name} {shown(value)}: expected one of {', '.join(choices)}")


def shown(value: Any, *, longest: int = _LONGEST_SHOWN) -> str:
    """A value of someone else's for a message: as `repr`, shortened; tensors are described by shape and type."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"a {type(value).__name__} {tuple(value.shape)} of {str(value.dtype).removeprefix('torch.')}"
    form = reprlib.Repr()
    form.maxstring = form.maxother = longest
    form.maxlevel = 3
    text = form.repr(str(value) if isinstance(value, PurePath) else value)
    return text if len(text) <= 3 * longest else f"{text[: 3 * longest]}..."


def one_line(message: str) -> str:
    """A message as a terminal may show it: line breaks and control characters escaped, a very long middle left out."""
    line = "".join(one if one.isprintable() else repr(one)[1:-1] for one in _shortened(message))
    return _shortened(line)


def _shortened(text: str) -> str:
    if len(text) <= _LONGEST_MESSAGE:
        return text
    return f"{text[: -_ENDING - 5 + _LONGEST_MESSAGE]} ... {text[-_ENDING:]}"


def reason(error: Exception) -> str:
    """What another library's error says, in one printable line: its kind, and a message of several shortened."""
    return f"{type(error).__name__}: {shown(str(error), longest=2 * _LONGEST_SHOWN)[1:-1]}"


def is_first_of_torchrun() -> bool:
    """Whether no other process of this machine, started by the same ``torchrun``, comes before this one."""
    return "TORCHELASTIC_RUN_ID" not in os.environ or os.environ.get("LOCAL_RANK") == "0"


def wait_for_torchrun() -> None:
    """Let ``torchrun``, if it has started this process, end it for the failure of another, which it then reports."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        time.sleep(_SECONDS_TO_BE_ENDED)


def say_last(line: str, *, is_shared: bool = False) -> None:
    """Print the line that ends a command on stderr; "" prints nothing.

    Of processes of ``torchrun`` that all end for the same reason, ``is_shared``, the first on a machine prints. Before
    they have `JOINED` each other that is likely: the others wait for ``torchrun`` to end them after the first, and
    print if it does not.
    """
    if is_shared and not is_first_of_torchrun():
        return
    if not JOINED.is_set() and not is_first_of_torchrun():
        wait_for_torchrun()
    if line:
        print(line, file=sys.stderr)


def line_and_status(error: Exception) -> tuple[str, int]:
    """What a command says of ``error`` in one line, and its exit status; raises what is a fault of ours."""
    status = 2 if isinstance(error, OptionError) else 1
    if isinstance(error, InputError):
        return one_line(str(error)), status
    if isinstance(error, OSError):
        place = "" if error.filename is None else f"{error.filename}: "
        return one_line(f"{place}cannot be read or written ({error.strerror or error})"), status
    if isinstance(error, UnicodeEncodeError):  # of a name, by the system
        text = shown(str(error.object))
        return f"{text}: the locale's encoding, {error.encoding}, has no such characters; set LC_ALL=C.UTF-8", status
    if isinstance(error, RuntimeError) and str(error).startswith("DataLoader worker"):
        what_to_do = (
            "run the same command again, with fewer --num-workers if it happens again (a training with --resume)"
        )
        return f"{str(error).split('. ')[0]}; is the memory full? {what_to_do}", status
    raise error


def at(where: str) -> str:
    """The place of an error, such as ``list.txt:7``, in brackets at the end of its message; "" for an unknown one."""
    return f" ({where})" if where else ""
