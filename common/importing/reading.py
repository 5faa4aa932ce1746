"""Find each sentence of a text in one long recording of it, without a trained model.

eSpeak NG speaks the text, and banded dynamic time warping finds the same sounds in the reading. Between two sentences,
a path may wait, or jump to any sentence nearby. A first path shows how fast the reader speaks; linear regression along
it maps eSpeak's sounds to the reader's. Source: aeneas (Pettarin, 2015); Sakoe & Chiba (1978).
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

import numba
import numpy as np

from common.importing.frames import FRAME_RATE, cepstra, log_mels, quiet_frames, speech_frames, subtract_mean
from common.text.espeak import EspeakSpeech, Speaker

_STEP = 5  # frames per step of the path
_STEP_RATE = FRAME_RATE / _STEP  # Hz
_MOSTLY = 0.7  # a step is quiet if more than this share of its frames is
_FLOOR = -4.0  # nepers relative to a channel's mean in speech; all quieter values count as equal
_BAND = round(300 * _STEP_RATE)  # columns on either side of the diagonal
_COHORT = 300  # random columns, to normalize distances

# Costs of one step, in standard deviations of the distance to a random sound, whose mean is 0 (see _Path).
_PAUSE = -3.0  # a quiet step between two words
_UNMATCHED = -0.4, -1.2  # a step between two sentences that isn't quiet: first, and adapted to the reader
_JUMPING = 15.0, 6.0  # continuing at a sentence other than the next: first, and adapted to the reader
_QUIET_SOUND = 0.5  # a quiet step elsewhere
_UNEVEN = 0.6  # staying at a column, or skipping one
_JUMP = 3  # code of a jump
_BLOCK = 64  # steps
_PRIOR = 200.0  # weight of the regression's prior, in steps
_LIKENESS = 0.5  # the prior's coefficient from each of eSpeak's features to the same one of the reader's
_ROUNDS = 2  # rounds of adapting to the reader's sound
_WORDS_PER_MINUTE = 150
_PACES = (0.55, 2.5)  # minimum and maximum to request from eSpeak NG
_SAME_PACE = 0.1
_WINDOW = 15  # steps whose mean cost shows how well the words in them match
_DOUBTFUL, _STEEPNESS = -0.8, 5.0  # the cost with confidence 1/2; steepness of the logistic function


@dataclass(frozen=True)
class AlignedWord:
    """A word in the reading, or several that eSpeak NG pronounces as one."""

    label: str  # as eSpeak NG reports it
    start_s: float
    confidence: float  # 0 to 1, that it is said there, together with its context


@dataclass(frozen=True)
class AlignedSentence:
    """A sentence of the text and where it was found in the reading."""

    sentence: int  # index in the text
    words: tuple[AlignedWord, ...]
    end_s: float

    @property
    def start_s(self) -> float:
        return self.words[0].start_s

    @property
    def confidence(self) -> float:
        """How well the whole sentence matches, 0 to 1."""
        return fmean(word.confidence for word in self.words)


@dataclass(frozen=True)
class _ReadingSteps:
    """Features of the recording, one row per step of 0.1 s."""

    features: np.ndarray  # (T, d)
    quiet: np.ndarray  # (T,) bool


@dataclass(frozen=True)
class _TextColumns:
    """Features of the text as spoken by eSpeak NG, one column per 0.1 s, and silent columns for pauses."""

    features: np.ndarray  # (J, d)
    sentence: np.ndarray  # (J,) index of the column's sentence; -1 between two sentences
    word: np.ndarray  # (J,) index of the column's word; for a silent column, that of the next word
    between: np.ndarray  # (J,) bool: no sound


def _mean_over_steps(frames: np.ndarray) -> np.ndarray:
    """Average every `_STEP` frames: (F, d) at `FRAME_RATE` -> (T, d)."""
    n_steps = len(frames) // _STEP
    return frames[: n_steps * _STEP].reshape(n_steps, _STEP, -1).mean(axis=1)


def _text_columns(spoken: Sequence[EspeakSpeech], features: Sequence[np.ndarray]) -> _TextColumns:
    """Make the columns of sentences from their ``features``, frames (F, d) for each."""
    silent = np.full(features[0].shape[1], np.nan)
    columns = [(silent, -1, 0)]  # features, sentence, word
    for number, (speech, frames) in enumerate(zip(spoken, features)):
        ends = [round(word.end_s * _STEP_RATE) for word in speech.words[:-1]]
        word = 0
        for place, row in enumerate(_mean_over_steps(frames)):
            while word < len(ends) and ends[word] <= place:
                word += 1
                columns.append((silent, number, word))
            columns.append((row, number, word))
        columns.append((silent, -1, 0))
    table = np.stack([row for row, _, _ in columns]).astype(np.float32)
    sentences, words = np.array([column[1:] for column in columns]).T
    return _TextColumns(np.nan_to_num(table), sentences, words, np.isnan(table[:, 0]))


class _Path:
    """The cheapest path of the recording through the text.

    A step's cost at a column is a squared feature distance, standardized by the distances to random columns: negative
    for similar sounds. An uneven pace costs more.
    """

    def __init__(self, sound: _ReadingSteps, text: _TextColumns, *, adapted: bool) -> None:
        """Find the path; ``adapted`` tells whether the features are those of `_adapt_to_reader`."""
        self.sound, self.text = sound, text
        sounding = text.features[~text.between]
        others = sounding[np.random.default_rng(0).integers(len(sounding), size=_COHORT)]
        distances = np.square(others).sum(axis=1) - 2 * sound.features @ others.T
        self._mean, self._spread = distances.mean(axis=1), distances.std(axis=1).mean()
        self._squares = np.square(text.features).sum(axis=1)
        self._gaps = text.sentence < 0  # before, between and after sentences
        self._between_words = text.between & ~self._gaps
        unmatched = _UNMATCHED[adapted]
        self._gap_costs = np.where(sound.quiet, _PAUSE, unmatched).astype(np.float32)
        self._word_costs = np.where(sound.quiet, _PAUSE, -unmatched).astype(np.float32)
        self.columns = self._find(jump=_JUMPING[adapted])  # of each step (T,)

    @property
    def sounding(self) -> np.ndarray:
        """The steps that aren't quiet, at columns that aren't, (T,) bool."""
        return ~self.text.between[self.columns] & ~self.sound.quiet

    @cached_property
    def costs(self) -> np.ndarray:
        """The cost of each step (T,)."""
        places = enumerate(self.columns)
        blocks = [self._block(slice(step, step + 1), slice(column, column + 1)) for step, column in places]
        uneven = ~self.text.between[self.columns] & (np.diff(self.columns, prepend=-1) != 1)
        return np.concatenate(blocks)[:, 0] + _UNEVEN * uneven

    def _block(self, steps: slice, columns: slice) -> np.ndarray:
        """Return the costs (steps, columns) float32 of a part of the matrix, at an even pace."""
        table = self._squares[columns] - 2 * self.sound.features[steps] @ self.text.features[columns].T
        table = (table - self._mean[steps, None]) / self._spread
        table[self.sound.quiet[steps]] = _QUIET_SOUND
        table[:, self._gaps[columns]] = self._gap_costs[steps, None]
        table[:, self._between_words[columns]] = self._word_costs[steps, None]
        return table

    def _find(self, *, jump: float) -> np.ndarray:
        n_steps, n_columns = len(self.sound.features), len(self.text.features)
        width = min(2 * _BAND, n_columns)
        starts = np.clip(np.arange(n_steps) * n_columns // n_steps - _BAND, 0, n_columns - width)  # around the diagonal
        staying = np.where(self.text.between, 0, _UNEVEN).astype(np.float32)
        codes = np.zeros((n_steps, width), np.uint8)
        sources = np.zeros(n_steps, np.int64)  # of the jumps
        totals = np.full(n_columns + 2, np.inf, np.float32)  # of column j at j + 2
        totals[2] = 0.0
        for begin in range(0, n_steps, _BLOCK):
            steps = slice(begin, min(begin + _BLOCK, n_steps))
            block = self._block(steps, slice(starts[begin], starts[steps.stop - 1] + width))
            _advance(totals, block, starts[steps], staying, self._gaps, jump, codes[steps], sources[steps])
        path = np.zeros(n_steps, np.int64)
        gaps = np.flatnonzero(self._gaps)
        column = int(gaps[np.argmin(totals[gaps + 2])])
        for step in reversed(range(n_steps)):
            if codes[step, column - starts[step]] == _JUMP:
                column = int(sources[step])
            path[step] = column
            column -= int(codes[step, column - starts[step]])
        return path


@numba.njit(cache=True)
def _advance(
    totals: np.ndarray,
    block: np.ndarray,
    starts: np.ndarray,
    staying: np.ndarray,
    is_gap: np.ndarray,
    jump: float,
    codes: np.ndarray,
    sources: np.ndarray,
) -> None:
    """Extend the cheapest paths by the steps of a block: update ``totals``, fill in ``codes`` and ``sources``.

    A code is the number of columns since the previous step, or marks a jump from the step's source.
    """
    width = codes.shape[1]
    for step in range(len(block)):
        low = starts[step]
        source = -1
        for column in range(low + width - 1, low - 1, -1):
            best, code = totals[column + 2] + staying[column], 0
            if totals[column + 1] < best:
                best, code = totals[column + 1], 1
            if totals[column] + _UNEVEN < best:
                best, code = totals[column] + _UNEVEN, 2
            totals[column + 2] = best + block[step, column - starts[0]]
            codes[step, column - low] = code
            if is_gap[column] and (source < 0 or totals[column + 2] < totals[source + 2]):
                source = column
        totals[low : low + 2] = np.inf  # columns that have left the band
        sources[step] = source
        if source >= 0:
            least = totals[source + 2] + jump
            for column in range(low, low + width):
                if is_gap[column] and totals[column + 2] > least:
                    totals[column + 2] = least
                    codes[step, column - low] = _JUMP


def _adapt_to_reader(sound: _ReadingSteps, text: _TextColumns, path: _Path) -> tuple[_ReadingSteps, _TextColumns]:
    """Map eSpeak's features to the reader's by ridge regression along a path, and whiten both with its residuals."""
    matched = path.sounding
    given = np.pad(text.features, ((0, 0), (0, 1)), constant_values=1.0)
    x, y = sound.features[matched], given[path.columns[matched]]
    expected = _LIKENESS * np.eye(y.shape[1], x.shape[1])
    weights = np.linalg.solve(y.T @ y + _PRIOR * np.eye(y.shape[1]), y.T @ x + _PRIOR * expected)
    errors = x - y @ weights
    rest = (errors.T @ errors + _PRIOR * np.eye(x.shape[1])) / (len(x) + _PRIOR)
    whitening = np.linalg.inv(np.linalg.cholesky(rest)).T
    return (
        replace(sound, features=(sound.features @ whitening).astype(np.float32)),
        replace(text, features=(given @ weights @ whitening).astype(np.float32)),
    )


def align(mels: np.ndarray, sentences: Sequence[str], *, language: str) -> list[AlignedSentence]:
    """Find the sentences in a reading's `log_mels` (F, 40) and return them in order; raises InputError."""
    lengths = [Speaker(language).speak(sentence).duration_s for sentence in sentences]
    pace = float(np.clip(sum(lengths) * FRAME_RATE / (~quiet_frames(mels)).sum(), *_PACES))
    spoken, path = _first_path(mels, sentences, language, pace)
    if abs(pace - 1) > _SAME_PACE:  # or else much of the text or recording is missing
        other = _first_path(mels, sentences, language, 1.0)
        if other[1].costs.mean() < path.costs.mean():
            pace, spoken, path = 1.0, *other
    relative = _relative_pace(path, n_sentences=len(sentences))
    if abs(relative - 1) > _SAME_PACE:
        spoken, path = _first_path(mels, sentences, language, float(np.clip(pace * relative, *_PACES)))
    sound, text = path.sound, path.text
    for _ in range(_ROUNDS):
        if path.sounding.any():
            path = _Path(*_adapt_to_reader(sound, text, path), adapted=True)
    return _find_sentences(path, spoken)


def _first_path(
    mels: np.ndarray, sentences: Sequence[str], language: str, pace: float
) -> tuple[list[EspeakSpeech], _Path]:
    """Return the sentences as spoken at a pace, and the path found before the reader's voice is known."""
    speaker = Speaker(language, words_per_minute=round(_WORDS_PER_MINUTE * pace))
    spoken = [speaker.speak(sentence) for sentence in sentences]
    return spoken, _Path(*_prepare_features(mels, spoken), adapted=False)


def _relative_pace(path: _Path, *, n_sentences: int) -> float:
    """Return the median over sentences of the reader's speed relative to eSpeak NG's."""
    sentences = path.text.sentence + 1
    n_columns = np.bincount(sentences[~path.text.between], minlength=n_sentences + 1)
    n_steps = np.bincount(sentences[path.columns[path.sounding]], minlength=n_sentences + 1)
    found = n_steps > 0
    return float(np.median(n_columns[found] / n_steps[found])) if found.any() else 1.0


def _prepare_features(mels: np.ndarray, spoken: Sequence[EspeakSpeech]) -> tuple[_ReadingSteps, _TextColumns]:
    """Compute features of the reading and of eSpeak NG's speech, compensating for level, microphone and noise."""
    said = [log_mels([speech.wave]) for speech in spoken]
    centered, centered_text = subtract_mean(mels), subtract_mean(np.concatenate(said))
    noise = np.maximum(np.percentile(centered, 5, axis=0), _FLOOR)
    read = cepstra(np.logaddexp(centered, _FLOOR))
    text = cepstra(np.logaddexp(centered_text, noise))
    read /= read[speech_frames(mels)].std(axis=0)
    text /= text.std(axis=0)
    ends = np.cumsum([len(mel) for mel in said])
    quiet = _mean_over_steps(quiet_frames(mels)[:, None].astype(np.float32))[:, 0] > _MOSTLY
    columns = _text_columns(spoken, np.split(text, ends[:-1]))
    return _ReadingSteps(_mean_over_steps(read).astype(np.float32), quiet), columns


def _find_sentences(path: _Path, spoken: Sequence[EspeakSpeech]) -> list[AlignedSentence]:
    """Return the sentences on a path in order; if a sentence occurs twice, use the better match."""
    columns, text = path.columns, path.text
    sentences, between = text.sentence[columns], text.between[columns]
    best: dict[int, AlignedSentence] = {}
    edges = [0, *(np.flatnonzero(np.diff(sentences)) + 1), len(columns)]
    for start, end in itertools.pairwise(edges):
        number, sounding = int(sentences[start]), start + np.flatnonzero(~between[start:end])
        if number < 0 or not len(sounding):
            continue
        confidences = _confidences(path.costs[sounding])
        said = text.word[columns[sounding]]
        groups = [*np.flatnonzero(np.diff(said, prepend=-1)), len(sounding)]  # where each word begins
        words = []
        for first, last in itertools.pairwise(groups):
            following = said[last] if last < len(said) else len(spoken[number].words)
            label = " ".join(word.label for word in spoken[number].words[said[first] : following])
            words.append(AlignedWord(label, sounding[first] / _STEP_RATE, float(confidences[first:last].min())))
        match = AlignedSentence(number, tuple(words), (sounding[-1] + 1) / _STEP_RATE)
        if number not in best or best[number].confidence < match.confidence:
            best[number] = match
    return sorted(best.values(), key=lambda match: match.start_s)


def _confidences(costs: np.ndarray) -> np.ndarray:
    """Return how confident it is that each step of a sentence matches, from the steps around it: (T,), 0 to 1."""
    n_averaged = min(_WINDOW, len(costs))
    means = np.convolve(costs, np.full(n_averaged, 1 / n_averaged), mode="valid")
    around = means[np.clip(np.arange(len(costs)) - n_averaged // 2, 0, len(means) - 1)]
    return 1 / (1 + np.exp(np.clip(_STEEPNESS * (around - _DOUBTFUL), -50, 50)))
