"""Sound in pieces: which frames each of them needs, and how soon the first one is there."""

from collections.abc import Iterator
from dataclasses import dataclass

FIRST_FRAMES = 16  # of the first piece, 0.2 s of the usual mels: enough to play while the second is made
GROWTH = 2  # of a piece over the one before: played without gaps by a vocoder of three times real time
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
