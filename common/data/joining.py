"""Neighboring clips of one speaker as one utterance: training sees positions that no clip of its own reaches."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

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


class JoinedClips:
    """Which clips of a list are one utterance in which epoch: seed, epoch and index alone decide."""

    def __init__(
        self, frames: Sequence[int], tokens: Sequence[int], speakers: Sequence[str], *, most: int, seed: int
    ) -> None:
        """Joined clips have ``most`` frames or fewer, but as many as tokens, with one between two clips."""
        self._frames, self._seed = frames, seed
        self._reach: list[range] = []  # from each clip on, as many as fit
        self.frames_at_most: list[int] = []  # of them
        self.tokens_at_most: list[int] = []
        for index, (n_frames, n_tokens) in enumerate(zip(frames, tokens, strict=True)):
            end = index + 1
            while end < len(frames) and speakers[end] == speakers[index]:
                size = n_frames + frames[end], n_tokens + 1 + tokens[end]
                if not size[1] <= size[0] <= most:
                    break
                (n_frames, n_tokens), end = size, end + 1
            self._reach.append(range(index, end))
            self.frames_at_most.append(n_frames)
            self.tokens_at_most.append(n_tokens)

    def clips(self, index: int, *, epoch: int) -> range:
        """The clips that are utterance ``index`` in an epoch: that alone, or some after it too."""
        reach, draws = self._reach[index], random.Random(f"join/{self._seed}/{epoch}/{index}")
        if len(reach) == 1 or draws.random() >= SHARE:
            return reach[:1]
        return reach[: draws.randint(2, len(reach))]

    def lengths(self, epoch: int) -> list[int]:
        """Frames of each utterance in an epoch."""
        return [sum(self._frames[one] for one in self.clips(index, epoch=epoch)) for index in range(len(self._frames))]
