"""Figures of each utterance and of all of them: averages, tables, files, and a journal of the results so far."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import InputError
from common.evaluation.options import GRIFFIN_LIM
from common.files import read_text, write_json, write_text, writing
from common.pages import Link, Measure, Row, cells, read_measures

JOURNAL, RESULTS, PAGE = "utterances.jsonl", "evaluation.json", "index.html"  # files of an evaluation
SYNTHESIZED, RECORDING = "synthesized", "recording"  # sounds of an utterance, beside GRIFFIN_LIM
MEASURES = read_measures("evaluation/measures.tsv")


def files_of(folder: Path, name: str) -> dict[str, Path]:
    """Where an evaluation in ``folder`` has an utterance's sounds and its plot."""
    return {
        SYNTHESIZED: folder / "synthesised" / name,
        RECORDING: folder / "recorded" / name,
        GRIFFIN_LIM: folder / GRIFFIN_LIM / name,
        "plot": (folder / "plots" / name).with_suffix(".svg"),
    }


@dataclass
class Result:
    """What is known of one utterance; filled as it is measured."""

    name: str  # of its files, "a/b.wav"
    text: str  # as the list has it
    key: str = ""  # digest of its inputs, `EvaluationItem.key`
    reference: str | None = None  # the words to recognize, as the recognizer writes them
    heard: str | None = None  # transcript of the sound
    recording: str | None = None  # path of the recorded clip
    figures: dict[str, float] = field(default_factory=dict)  # by keys of MEASURES and of their weights
    beside: "list[Result]" = field(default_factory=list)  # the recording, and its words by Griffin-Lim, by these names
    cut: bool = False  # the voice did not end it and was stopped
    silent: bool = False  # the voice made hardly a frame of it
    error: str | None = None  # why a figure is missing

    def add(self, figures: Mapping[str, float]) -> None:
        """Add the figures that have a value; NaN is none."""
        self.figures |= {key: value for key, value in figures.items() if value == value}

    def files(self, folder: Path) -> dict[str, Path]:
        """The files that an evaluation in ``folder`` has of it."""
        names = {SYNTHESIZED, "plot", *(one.name for one in self.beside)}
        return {kind: path for kind, path in files_of(folder, self.name).items() if kind in names}


def mean(measure: Measure, rows: Sequence[Mapping[str, float]]) -> float | None:
    """The weighted mean of a figure over the rows that have it: of error rates, all errors by all words."""
    known = [row for row in rows if measure.key in row]
    weights = [row[measure.weight] for row in known] if measure.weight else None
    return float(np.average([row[measure.key] for row in known], weights=weights)) if known else None


def averages(results: Sequence[Result]) -> dict[str, dict[str, float | None]]:
    """The mean of each measure: of the utterances, by the name "", and of what they are shown beside."""
    rows = {"": [result.figures for result in results]}
    for result in results:
        for one in result.beside:
            rows.setdefault(one.name, []).append(one.figures)
    return {name: {key: mean(measure, found) for key, measure in MEASURES.items()} for name, found in rows.items()}


def worst_of(measure: Measure, results: Sequence[Result]) -> Result | None:
    """The utterance with the worst value; None where all are equal, or none is worse than another."""
    known = [result for result in results if measure.key in result.figures]
    if not measure.better or len({result.figures[measure.key] for result in known}) < 2:
        return None
    return (min if measure.better == "high" else max)(known, key=lambda result: result.figures[measure.key])


def known_measures(results: Sequence[Result]) -> list[Measure]:
    """The measures that an utterance has a figure of: the columns of tables."""
    return [one for one in MEASURES.values() if any(one.key in result.figures for result in results)]


def result_rows(results: Sequence[Result]) -> list[Row]:
    """The figures of each utterance, and of what it is shown beside; the n-th name leads to anchor ``u<n>``."""
    rows: list[Row] = []
    for number, result in enumerate(results):
        for name, one in [(result.name, result), *((f"{result.name}, {one.name}", one) for one in result.beside)]:
            rows.append((Link(name, f"u{number}"), *cells(known_measures(results), one.figures)))
    return rows


def average_rows(results: Sequence[Result], *, n_listed: int) -> list[Row]:
    """The averages of utterances, and of what they are shown beside."""
    done = f"{len(results)} of {n_listed} (stopped)" if len(results) < n_listed else f"all {n_listed}"
    return [
        (f"{done}, {name}" if name else done, *cells(known_measures(results), figures))
        for name, figures in averages(results).items()
    ]


def save_results(path: Path, results: Sequence[Result], *, n_listed: int, settings: dict[str, Any]) -> None:
    """Write ``settings``, averages and utterances as JSON; rates are parts of 1, what is absent is null."""
    absent = dict.fromkeys([*MEASURES, "work"])
    rows = []
    for result in results:
        row = asdict(result) | absent | result.figures
        del row["figures"], row["key"]
        row["beside"] = {one.name: {"heard": one.heard} | absent | one.figures for one in result.beside}
        rows.append(row)
    beside = averages(results)
    means = {"averages": beside.pop(""), "averages_beside": beside}
    done = {"n_done": len(results), "n_listed": n_listed, "stopped": len(results) < n_listed}
    write_json(path, {"settings": settings, "extent": done, **means, "utterances": rows})


def read_journal(path: Path, settings: dict[str, Any]) -> list[Result]:
    """The results of an earlier run of the same ``settings``, up to a line that a kill has cut short."""
    results: list[Result] = []
    with suppress(InputError, ValueError, TypeError, KeyError):
        first, *lines = read_text(path).splitlines()
        for line in lines if json.loads(first) == json.loads(json.dumps(settings)) else ():
            values = json.loads(line)
            results.append(Result(**values | {"beside": [Result(**one) for one in values["beside"]]}))
    return results


def start_journal(path: Path, settings: dict[str, Any], results: Sequence[Result]) -> None:
    """Begin the file of results so far anew, one a line below the settings, so that a run can be resumed."""
    with writing(path, "; choose another --output"):
        write_text(path, "".join(f"{json.dumps(line)}\n" for line in [settings, *map(asdict, results)]))


def add_to_journal(path: Path, result: Result) -> None:
    """Append a result."""
    with writing(path), path.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps(asdict(result))}\n")
