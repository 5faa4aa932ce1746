"""Sound in pieces: which frames each of them needs, and how soon the first one is there."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torch import Tensor

FIRST_FRAMES = 8  # of the first piece, 0.1 s of the usual mels: with its context little work before sound begins
GROWTH = 2  # of a piece over the one before, so that what is computed twice soon is a small share
LONGEST_FRAMES = 512  # 6 s: beyond it context is a small share of the work, and memory would go on growing


@dataclass(frozen=True)
class Piece:
    """Frames [start, end) of a mel-spectrogram whose sound is made, from frames [first, last) that are read for it."""

    start: int
    end: int
    first: int
    last: int


def plan_pieces(n_frames: int, *, context: int) -> Iterator[Piece]:
    """Pieces of a mel of ``n_frames`` in order, each read with ``context`` frames, or all that there are, on each side.

    The first is small, and those after it grow; none of these is shorter than ``context``, so that at most two thirds
    of what a network reads is read for its neighbors' sake. What would be left for a shorter one at the end goes into
    the piece before it, so a piece is of no more than ``max(LONGEST_FRAMES, context) + context`` frames.
    """
    start, size = 0, FIRST_FRAMES
    while start < n_frames:
        end = start + size if n_frames - start - size > context else n_frames
        yield Piece(start, end, first=max(start - context, 0), last=min(end + context, n_frames))
        start, size = end, max(min(size * GROWTH, LONGEST_FRAMES), context)


@dataclass(frozen=True)
class FirstSound:
    """How soon speech begins that is streamed; medians over turns."""

    seconds: float  # until the first piece
    share: float  # of the time for all of it at once, in the same turn: a load on the machine slows both
    whole: float  # s, for all of it at once
    streamed: float  # s, until the last piece


def first_sound(stream: Callable[[], Iterator[Tensor]], speak: Callable[[], object], *, turns: int = 3) -> FirstSound:
    """Time ``stream()`` and ``speak()`` by turns, after one turn that does not count.

    Both begin with the same text or mel, and their sound lies on the CPU, so that work on a device is done.
    """
    found = []
    for _ in range(1 + turns):
        started = time.perf_counter()
        speak()
        whole = time.perf_counter() - started
        started = time.perf_counter()
        times = [time.perf_counter() - started for _ in stream()]
        found.append((times[0], times[0] / whole, whole, times[-1]))
    return FirstSound(*map(statistics.median, zip(*found[1:])))
