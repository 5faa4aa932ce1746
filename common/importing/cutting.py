"""Cut a long reading and its text into clips of 2 to 12 s at pauses, and list the sentences that aren't found."""

import difflib
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from common.errors import InputError
from common.importing.frames import FRAME_RATE, log_mels, quiet_frames
from common.importing.reading import AlignedSentence, AlignedWord, align
from common.text.cleaners import get_cleaner

SHORTEST, LONGEST = 2.0, 12.0  # s, of a clip
CONFIDENT = 0.5  # below this, a clip isn't used for training
_EDGE = 0.25  # s; a clip includes at most this much of a pause
_NEAR = 0.4  # s around a sentence's end in which to search for its pause
_LEAST_PAUSE = 3  # frames
_INNER_PAUSE = 0.15  # s; a sentence may be cut at pauses longer than this
_PRECISION = 0.16  # s, of the start of a word
_LEAST_SOUND = 0.3  # s; less sound than this between two sentences isn't speech


@dataclass(frozen=True)
class AlignedClip:
    """A part of the reading and its text."""

    start_s: float
    end_s: float
    text: str
    confidence: float  # 0 to 1, the minimum over its pieces


@dataclass(frozen=True)
class AlignedReading:
    """The clips of a long reading, and the sentences that weren't found in it."""

    clips: tuple[AlignedClip, ...]
    odd_lengths: tuple[AlignedClip, ...]  # found, but too short or too long for a clip
    unmatched_text: tuple[str, ...]


Pause = tuple[float, float]  # start and end in s, equal if there is no pause


@dataclass(frozen=True)
class _Piece:
    """A sentence in the reading, or a part of one between two pauses."""

    text: str
    confidence: float
    before: Pause
    after: Pause
    ends_sentence: bool


def align_reading(blocks: Iterable[np.ndarray], sentences: Sequence[str], *, language: str = "en-us") -> AlignedReading:
    """Cut a reading, blocks (T,) of mono audio at `common.importing.frames.RATE`, into clips with their text.

    Time and memory grow linearly with its length. Raises InputError.
    """
    if not sentences:
        raise InputError("the text has no sentences")
    mels = log_mels(blocks)
    quiet = quiet_frames(mels) if len(mels) else np.ones(1, bool)
    if (sound := (~quiet).sum() / FRAME_RATE) < SHORTEST:
        raise InputError(f"the recording has {sound:.1f} s of sound, expected at least {SHORTEST:g}")
    read = get_cleaner("english_cleaners_v3") if language.split("-")[0] == "en" else str
    matches = align(mels, [read(sentence) for sentence in sentences], language=language)
    pauses = _Pauses(quiet)
    clips = [clip for run in _find_runs(matches, sentences, pauses) for clip in _join_pieces(run)]
    fitting = tuple(clip for clip in clips if SHORTEST <= clip.end_s - clip.start_s <= LONGEST)
    matched = {match.sentence for match in matches}
    left_out = tuple(sentence for number, sentence in enumerate(sentences) if number not in matched)
    return AlignedReading(fitting, tuple(clip for clip in clips if clip not in fitting), left_out)


class _Pauses:
    """The pauses of a reading, in seconds."""

    def __init__(self, quiet: np.ndarray) -> None:
        """``quiet`` (F,) comes from `quiet_frames`; before and after the recording counts as quiet, too."""
        padded = np.pad(quiet, 1, constant_values=True)
        edges = np.flatnonzero(np.diff(np.pad(padded, 1).astype(np.int8)))
        starts, ends = (edges[::2] - 1) / FRAME_RATE, (edges[1::2] - 1) / FRAME_RATE
        long = (ends - starts) * FRAME_RATE > _LEAST_PAUSE - 0.5
        long[[0, -1]] = True
        self.starts, self.ends = starts[long], ends[long]
        self._sound = np.concatenate([[0], np.cumsum(~quiet)]) / FRAME_RATE

    def near(self, start: float, end: float) -> Pause:
        """Return the pause for a cut near [start, end] that has the greatest length minus distance, both in s."""
        distance = np.maximum(np.maximum(self.starts - end, start - self.ends), 0)
        score = np.where(distance <= _NEAR, self.ends - self.starts - distance, -np.inf)
        best = int(np.argmax(score))
        if score[best] == -np.inf:
            return (start + end) / 2, (start + end) / 2
        return float(self.starts[best]), float(self.ends[best])

    def within(self, time: float) -> Pause | None:
        """Return the pause that ends when a word begins, if it is long enough to cut a sentence there."""
        fits = (abs(self.ends - time) < _PRECISION) & (self.ends - self.starts > _INNER_PAUSE)
        return next(((float(self.starts[at]), float(self.ends[at])) for at in np.flatnonzero(fits)), None)

    def sound(self, start: float, end: float) -> float:
        """Return the seconds of sound in [start, end]."""
        first, last = np.clip([round(start * FRAME_RATE), round(end * FRAME_RATE)], 0, len(self._sound) - 1)
        return float(self._sound[last] - self._sound[first])


def _find_runs(matches: Sequence[AlignedSentence], sentences: Sequence[str], pauses: _Pauses) -> Iterator[list[_Piece]]:
    """Yield runs of pieces that have only pauses between them and are either all confident or all doubtful."""
    run: list[_Piece] = []
    before = pauses.near(matches[0].start_s, matches[0].start_s) if matches else (0.0, 0.0)
    for match, following in itertools.zip_longest(matches, matches[1:]):
        adjacent = following is not None and pauses.sound(match.end_s, following.start_s) <= _LEAST_SOUND
        after = pauses.near(match.end_s, following.start_s if adjacent else match.end_s)
        for piece in _cut_sentence(match, sentences[match.sentence], before, after, pauses):
            if run and (piece.confidence < CONFIDENT) != (run[0].confidence < CONFIDENT):
                yield run
                run = []
            run.append(piece)
        if not adjacent:
            yield run
            run = []
        before = after if adjacent or not following else pauses.near(following.start_s, following.start_s)


def _cut_sentence(match: AlignedSentence, text: str, before: Pause, after: Pause, pauses: _Pauses) -> Iterator[_Piece]:
    """Yield a sentence's parts between pauses; all have its lowest confidence, or their own if it exceeds a clip."""
    start, word = 0, 0
    confidences = [one.confidence for one in match.words]
    if match.end_s - match.start_s <= LONGEST:
        confidences = [min(confidences)] * len(confidences)
    for cut, number in _word_starts(text, match.words):
        pause = pauses.within(match.words[number].start_s)
        if pause and before[1] < pause[0] and pause[1] < after[0]:
            yield _Piece(text[start:cut].strip(), min(confidences[word:number]), before, pause, ends_sentence=False)
            start, word, before = cut, number, pause
    yield _Piece(text[start:].strip(), min(confidences[word:]), before, after, ends_sentence=True)


def _word_starts(text: str, spoken: Sequence[AlignedWord]) -> Iterator[tuple[int, int]]:
    """Yield the offset and the spoken word's number for each word of the text that is said along with a neighbor."""
    tokens = [found for found in re.finditer(r"\S+", text) if re.search(r"\w", found[0])]
    written = [re.sub(r"\W", "", token[0]).lower() for token in tokens]
    groups = [[re.sub(r"\W", "", word).lower() for word in group.label.split()] for group in spoken]
    said = list(itertools.chain(*groups))
    numbers = {place: number for number, place in enumerate(itertools.accumulate(map(len, groups), initial=0))}
    numbers.pop(len(said), None)
    for block in difflib.SequenceMatcher(None, written, said, autojunk=False).get_matching_blocks():
        for shift in range(block.size) if block.size > 1 else ():
            if block.a + shift > 0 and block.b + shift in numbers:
                yield tokens[block.a + shift].start(), numbers[block.b + shift]


def _join_pieces(run: Sequence[_Piece]) -> list[AlignedClip]:
    """Return the cheapest way to make clips of pieces: single sentences, several short ones, or part of a long one."""
    best: list[tuple[float, list[AlignedClip]]] = [(0.0, [])]
    for end in range(1, len(run) + 1):
        ways = [(math.inf, best[-1][1])]
        for start in reversed(range(end)):
            clip = _make_clip(run[start:end])
            cost, before = best[start]
            ways.append((cost + _cost_of(clip, run[start:end], is_last=end == len(run)), [*before, clip]))
            if clip.end_s - clip.start_s > 2 * LONGEST:
                break
        best.append(min(ways, key=lambda way: way[0]))
    return best[-1][1]


def _make_clip(pieces: Sequence[_Piece]) -> AlignedClip:
    (begin, start), (end, after) = pieces[0].before, pieces[-1].after
    confidence = min(piece.confidence for piece in pieces) if begin < start and end < after else 0.0
    start, end = max((begin + start) / 2, start - _EDGE, 0), min((end + after) / 2, end + _EDGE)
    return AlignedClip(start, end, " ".join(piece.text for piece in pieces), confidence)


def _cost_of(clip: AlignedClip, pieces: Sequence[_Piece], *, is_last: bool) -> float:
    """Return how much a clip differs from a single sentence between two pauses."""
    seconds, last = clip.end_s - clip.start_s, pieces[-1]
    cost = 1.0 * sum(piece.ends_sentence for piece in pieces[:-1])  # joined sentences
    cost += 10 * (seconds < SHORTEST) + 10 * (seconds > LONGEST) * (1 + seconds - LONGEST)
    if not last.ends_sentence:
        cost += 2.0 if last.text[-1:] in ".!?;:" else 2.5 if last.text[-1:] == "," else 3.5
    if not is_last and last.after[0] == last.after[1]:
        cost += 20  # no pause to cut at
    return cost
