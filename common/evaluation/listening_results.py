"""Results of a listening test: listeners' files are read and checked, and each system's figures come with intervals."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest, t

from common.errors import InputError, shown
from common.evaluation.listening import ListeningKey
from common.evaluation.options import AB, MUSHRA
from common.evaluation.results import RECORDING
from common.files import read_json, write_text
from common.pages import Measure, Row, cells, text_table

LISTENING_RESULTS = "listening_results.tsv"  # in an evaluation's folder
CONFIDENCE = 0.95
# BS.1534-3, 4.1.2: a listener who rates the hidden reference below 90 in more than 15 % of the trials is not counted.
LEAST_REFERENCE, MOST_MISSED = 90.0, 0.15

Scores = dict[str, dict[str, float]]  # of each trial, by system
_MEAN = Measure("mean", "mean")
_LOW, _HIGH = Measure("low", "95 % from"), Measure("high", "to")
_COUNTS = [Measure(key, key, form=".0f") for key in ("first", "second", "neither")]
_SHARE = Measure("share", "first", unit="%", scale=100)
_P_VALUE = Measure("p", "p", form=".3g")
_BOUNDS = [Measure(one.key, one.name, unit="%", scale=100) for one in (_LOW, _HIGH)]


@dataclass(frozen=True)
class Answers:
    """What one listener answered."""

    listener: str
    scores: Scores

    @property
    def missed_references(self) -> float:
        """The share of trials whose hidden reference is rated too low to trust the listener."""
        missed = [scores[RECORDING] < LEAST_REFERENCE for scores in self.scores.values()]
        return sum(missed) / len(missed)


def report_results(folder: Path, results: Path) -> int:
    """Print and write the table of the test in ``folder`` from the files in ``results``; the exit status.

    Files that cannot be counted are one line each, and the status is 1.

    Raises:
        InputError: there is no test, or no listener to count.
    """
    key = ListeningKey.read(folder)
    listeners, problems = read_listeners(results, key)
    print(*problems, sep="\n", end="\n" if problems else "")
    counted = listeners
    if key.kind == MUSHRA:
        counted = [one for one in listeners if one.missed_references <= MOST_MISSED]
        for one in listeners:
            if one not in counted:
                missed = f"{one.missed_references:.0%} of the hidden references below {LEAST_REFERENCE:g}"
                print(f"{one.listener}: {missed}; not counted (BS.1534-3)")
    if not counted:
        raise InputError(f"{results}: none of {len(listeners)} listeners can be counted, expected at least one")
    table = _mushra_table(counted, key.systems) if key.kind == MUSHRA else _preference_table(counted, key.systems)
    print(f"{key.kind}: {len(counted)} of {len(listeners)} listeners, {len(key.trials)} trials each")
    print(*text_table(table), sep="\n")
    path = folder / LISTENING_RESULTS
    write_text(path, "".join("\t".join(map(str, row)) + "\n" for row in table))
    print(f"table: {path}")
    return 1 if problems else 0


def read_listeners(folder: Path, key: ListeningKey) -> tuple[list[Answers], list[str]]:
    """The listeners of a test, from the JSON files in ``folder``, and a line for each file that cannot be counted.

    Raises:
        InputError: there is no file.
    """
    paths = sorted(folder.glob("*.json"))
    if not paths:
        raise InputError(f"{folder}: no result files (*.json), which listeners save at the end of the test (--results)")
    listeners: dict[str, Answers] = {}
    problems = []
    for path in paths:
        try:
            answers = _read_answers(path, key)
            if answers.listener in listeners:
                raise InputError(f"{path}: a second file of listener {answers.listener}; not counted")
            listeners[answers.listener] = answers
        except InputError as error:
            problems.append(str(error))
    return list(listeners.values()), problems


def _read_answers(path: Path, key: ListeningKey) -> Answers:
    """The answers in one file; raises InputError where it is not a complete one of this test."""
    values = read_json(path)
    if not isinstance(values, dict) or not {"test", "listener", "answers"} <= values.keys():
        raise InputError(f"{path}: not a result file of a listening test")
    if values["test"] != key.test:
        raise InputError(f"{path}: of another listening test, {shown(values['test'])}, expected {key.test!r}")
    answers, listener = values["answers"], values["listener"]
    if not isinstance(listener, str) or not listener:
        raise InputError(f"{path}: listener {shown(listener)}, expected a name")
    if not isinstance(answers, dict) or answers.keys() != key.trials.keys():
        n_answered = len(answers) if isinstance(answers, dict) else 0
        raise InputError(f"{path}: answers of {n_answered} trials, expected those of the test's {len(key.trials)}")
    scores = {}
    for name, trial in key.trials.items():
        given = answers[name]
        if not isinstance(given, dict) or given.keys() != trial.sounds.keys() or not _are_scores(given, key.kind):
            raise InputError(f"{path}: {shown(given)} in trial {name}, expected a score of each of its sounds")
        scores[name] = {trial.sounds[sound]: float(score) for sound, score in given.items()}
    return Answers(listener, scores)


def _are_scores(given: Mapping[str, Any], kind: str) -> bool:
    """Whether scores are those of a kind of test: 0 to 100, or 1 for the preferred one of two and 0 for the other."""
    scores = list(given.values())
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in scores):
        return False
    if kind == AB:
        return sorted(scores) in ([0, 0], [0, 1])
    return all(0 <= one <= 100 for one in scores)


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean, and its confidence interval by Student's t; NaN where one value is all there is."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, math.nan, math.nan
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    half = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * error
    return mean, mean - half, mean + half


def preference(n_first: int, n_second: int) -> dict[str, float]:
    """The share of the first of two among preferences, its Wilson interval, and p of the two-sided binomial test."""
    if n_first + n_second == 0:
        return {}
    test = binomtest(n_first, n_first + n_second)
    interval = test.proportion_ci(CONFIDENCE, method="wilson")
    return {"share": test.statistic, "low": interval.low, "high": interval.high, "p": test.pvalue}


def _mushra_table(listeners: Iterable[Answers], systems: Sequence[str]) -> list[Row]:
    """Heading and systems, the best first: the mean over listeners of each one's mean over trials."""
    means = {
        system: [float(np.mean([trial[system] for trial in one.scores.values()])) for one in listeners]
        for system in systems
    }
    rows = {}
    for system, values in means.items():
        figures = dict(zip(("mean", "low", "high"), mean_interval(values)))
        rows[system] = {name: value for name, value in figures.items() if value == value}
    measures = [_MEAN, _LOW, _HIGH]
    order = sorted(rows, key=lambda system: -rows[system]["mean"])
    table: list[Row] = [(system, *cells(measures, rows[system])) for system in order]
    return [("system", *map(str, measures)), *table]


def _preference_table(listeners: Iterable[Answers], systems: Sequence[str]) -> list[Row]:
    """Heading and pairs of systems: how many answers prefer which, the share of the first, and its test."""
    trials = [scores for one in listeners for scores in one.scores.values()]
    measures = [*_COUNTS, _SHARE, *_BOUNDS, _P_VALUE]
    rows: list[Row] = [("first", "second", "prefer first", "prefer second", "neither", *map(str, measures[3:]))]
    for first, second in combinations(systems, 2):
        pair = [scores for scores in trials if scores.keys() == {first, second}]
        n_first, n_second = (sum(scores[one] == 1 for scores in pair) for one in (first, second))
        counts: dict[str, float] = {"first": n_first, "second": n_second, "neither": len(pair) - n_first - n_second}
        if pair:
            rows.append((first, second, *cells(measures, counts | preference(n_first, n_second))))
    return rows
