"""User-facing errors: one line that says what is wrong, where, and what to do."""

import argparse
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import PurePath
from typing import Any

_LONGEST_SHOWN = 100  # characters of a value in a message


class InputError(Exception):
    """Bad input: a file, a list, a checkpoint or an utterance. Commands exit with status 1."""


class OptionError(InputError, argparse.ArgumentTypeError):
    """Options that are invalid or don't go together. Commands exit with status 2."""


class CheckpointError(InputError):
    """A checkpoint that can't be read, is of another model, or doesn't fit this one."""


class AudioError(InputError):
    """An unusable audio file: missing, truncated, not mono, not finite, or at another sampling rate."""


class OutputError(InputError):
    """A file or folder that can't be written. Commands exit with status 1."""


def check_choice(name: str, value: str | None, choices: Collection[str]) -> None:
    """Raise InputError unless ``value`` is one of ``choices``; the message calls it ``name``."""
    if value not in choices:
        raise InputError(f"{name} {shown(value)}: expected one of {', '.join(choices)}")


def shown(value: Any, *, longest: int = _LONGEST_SHOWN) -> str:
    """Return a short `repr` of a value for a message; tensors are described by shape and type."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"a {type(value).__name__} {tuple(value.shape)} of {str(value.dtype).removeprefix('torch.')}"
    text = repr(str(value) if isinstance(value, PurePath) else value)
    return text if len(text) <= longest else f"{text[: longest // 2]}...{text[-longest // 2 :]}"


def reason(error: Exception) -> str:
    """Return another library's error as one line: its type and its shortened message."""
    return f"{type(error).__name__}: {shown(str(error), longest=2 * _LONGEST_SHOWN)[1:-1]}"


def line_and_status(error: Exception) -> tuple[str, int]:
    """Return the line that a command prints for an error, and its exit status; re-raise errors that are bugs."""
    if isinstance(error, InputError):
        return " ".join(str(error).split()), 2 if isinstance(error, OptionError) else 1
    if isinstance(error, OSError):
        place = "" if error.filename is None else f"{error.filename}: "
        return f"{place}cannot be read or written ({error.strerror or error})", 1
    if isinstance(error, ModuleNotFoundError) and error.name and find_spec(error.name.partition(".")[0]) is None:
        return f"this needs the package {error.name}, which is not installed: pip install -r requirements.txt", 1
    is_torch = type(error).__name__ == "OutOfMemoryError" or "DefaultCPUAllocator" in str(error)
    if is_torch or isinstance(error, MemoryError):
        return "out of memory: use smaller batches, fewer --num-workers, or shorter clips", 1
    if isinstance(error, RuntimeError) and str(error).startswith("DataLoader worker"):
        hint = "is memory full? rerun the command (with --resume if it's a training), or use fewer --num-workers"
        return f"{str(error).split('. ')[0]}; {hint}", 1
    raise error


def at(where: str) -> str:
    """Return the place of an error in parentheses, ``(list.txt:7)``, to append to its message, or ""."""
    return f" ({where})" if where else ""
