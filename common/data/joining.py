"""Neighboring clips of one speaker as one utterance: training sees positions that no clip of its own reaches."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from common.options import option

SHARE = 0.25  # of an epoch's utterances that clips after them are joined to
JOIN_CLIPS = partial(
    option,
    0.0,
    "join neighboring clips of one speaker up to so many seconds, for a quarter of the utterances of each epoch, so "
    "that sentences longer than any clip are learned; 0: none",
    least=0,
    most=3600,
    metavar="SECONDS",
    variable="JOIN_CLIPS",
)


@dataclass(frozen=True)
class Longest:
    """The most that utterances of a training have."""

    frames: int
    symbols: int

    def or_longer(self, other: "Longest") -> "Longest":
        """The longest of two trainings."""
        return Longest(max(self.frames, other.frames), max(self.symbols, other.symbols))


class JoinedClips:
    """Which clips of a list are one utterance in which epoch: seed, epoch and index alone decide."""

    def __init__(
        self, frames: Sequence[int], tokens: Sequence[int], speakers: Sequence[str], *, most: int, seed: int
    ) -> None:
        """Clips have ``frames`` and ``tokens`` (N,) and ``speakers``; joined ones have ``most`` frames or fewer, and
        not fewer than tokens and the spaces between texts.
        """
        self.frames = frames
        self._seed = seed
        self._reach: list[range] = []  # from each clip on, as many as fit
        self._sizes: list[tuple[int, int]] = []  # their frames and tokens, with a token between two clips
        same = [first == second for first, second in pairwise(speakers)] + [False]
        for index, (n_frames, n_tokens) in enumerate(zip(frames, tokens, strict=True)):
            end = index + 1
            while same[end - 1] and n_frames + frames[end] <= most:
                if n_frames + frames[end] < n_tokens + 1 + tokens[end]:
                    break
                n_frames, n_tokens = n_frames + frames[end], n_tokens + 1 + tokens[end]
                end += 1
            self._reach.append(range(index, end))
            self._sizes.append((n_frames, n_tokens))

    @property
    def frames_at_most(self) -> list[int]:
        """Frames of the longest utterance that begins with each clip."""
        return [n_frames for n_frames, _ in self._sizes]

    @property
    def tokens_at_most(self) -> list[int]:
        """Tokens of the longest utterance that begins with each clip."""
        return [n_tokens for _, n_tokens in self._sizes]

    def clips(self, index: int, *, epoch: int) -> range:
        """The clips that are utterance ``index`` in an epoch: that alone, or some after it too."""
        reach = self._reach[index]
        draws = random.Random(f"join/{self._seed}/{epoch}/{index}")
        if len(reach) == 1 or draws.random() >= SHARE:
            return reach[:1]
        return reach[: draws.randint(2, len(reach))]

    def lengths(self, epoch: int) -> list[int]:
        """Frames of each utterance in an epoch."""
        return [sum(self.frames[one] for one in self.clips(index, epoch=epoch)) for index in range(len(self.frames))]
