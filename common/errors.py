"""Errors that are for people: one line that says what is wrong, where, and what to do."""

import argparse
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import PurePath
from typing import Any

_LONGEST_SHOWN = 100  # characters of a value in a message


class InputError(Exception):
    """Bad input: a file, a list, a checkpoint or an utterance. Commands end with exit status 1."""


class OptionError(InputError, argparse.ArgumentTypeError):
    """Options that cannot be used or do not fit together. Commands end with exit status 2."""


class CheckpointError(InputError):
    """A checkpoint that cannot be read, is of another model, or does not fit this one."""


class AudioError(InputError):
    """An audio file that cannot be used: missing, truncated, of another rate, not mono, not finite."""


class OutputError(InputError):
    """A file or folder that cannot be written. Commands end with exit status 1."""


def check_choice(name: str, value: str | None, choices: Collection[str]) -> None:
    """Raise InputError unless ``value`` is one of ``choices``; ``name`` says what it is."""
    if value not in choices:
        raise InputError(f"{name} {shown(value)}: expected one of {', '.join(choices)}")


def shown(value: Any, *, longest: int = _LONGEST_SHOWN) -> str:
    """Return a short `repr` of a value for a message; tensors are described by shape and type."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"a {type(value).__name__} {tuple(value.shape)} of {str(value.dtype).removeprefix('torch.')}"
    text = repr(str(value) if isinstance(value, PurePath) else value)
    return text if len(text) <= longest else f"{text[: longest // 2]}...{text[-longest // 2 :]}"


def reason(error: Exception) -> str:
    """Return another library's error in one line: its type, and its message shortened."""
    return f"{type(error).__name__}: {shown(str(error), longest=2 * _LONGEST_SHOWN)[1:-1]}"


def line_and_status(error: Exception) -> tuple[str, int]:
    """The line that a command prints for an error, and its exit status; raises errors that are bugs of ours."""
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
        hint = "is the memory full? run the same command again (a training with --resume), or with fewer --num-workers"
        return f"{str(error).split('. ')[0]}; {hint}", 1
    raise error


def at(where: str) -> str:
    """Return the place of an error, such as ``list.txt:7``, in parentheses for the end of its message, or ""."""
    return f" ({where})" if where else ""
