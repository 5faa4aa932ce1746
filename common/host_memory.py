"""Keeps the C library from giving every large tensor's memory back to the system."""

import ctypes
import sys

_M_TRIM_THRESHOLD = -1  # glibc, malloc.h
_M_MMAP_MAX = -4


def keep_freed_memory() -> bool:
    """Let freed memory serve the next tensors instead of being returned; call it before work on a CPU.

    By default glibc maps each large tensor anew, and the system then clears it page by page on first use, which takes
    longer than many operations on it. The process keeps its peak memory until it ends. Returns whether the C library
    could be told so: it is glibc's own setting.
    """
    if not sys.platform.startswith("linux"):
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    return bool(set_option(_M_MMAP_MAX, 0)) and bool(set_option(_M_TRIM_THRESHOLD, -1))
