"""Figures of each utterance and of all of them: averages, tables, files, and a journal of the results so far."""

import difflib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from common.evaluation.differences import Difference, difference_rows, find_differences
from common.evaluation.options import GRIFFIN_LIM
from common.files import write_json, write_text, writing
from common.pages import Link, Measure, Row, cells, read_measures, render_page, setting_rows

JOURNAL, RESULTS, PAGE = "utterances.jsonl", "evaluation.json", "index.html"  # files of an evaluation
SYNTHESIZED, RECORDING = "synthesized", "recording"  # sounds of an utterance, beside GRIFFIN_LIM
MEASURES = read_measures("evaluation/measures.tsv")


def files_of(folder: Path, name: str) -> dict[str, Path]:
    """Where an evaluation in ``folder`` has an utterance's sounds, which lose nothing as WAV, and its plot."""
    sound, plot = (Path(name).with_suffix(suffix) for suffix in (".wav", ".png"))
    return {
        RECORDING: folder / "recorded" / sound,
        GRIFFIN_LIM: folder / GRIFFIN_LIM / sound,
        SYNTHESIZED: folder / "synthesised" / sound,
        "plot": folder / "plots" / plot,
    }


@dataclass
class Result:
    """What is known of one utterance; filled as it is measured."""

    name: str  # of its files, "a/b.wav"
    text: str  # as the list has it
    key: str = ""  # digest of what it depends on, `EvaluationItem.key`
    reference: str | None = None  # the words to recognize, as the recognizer writes them
    heard: str | None = None  # transcript of the sound
    recording: str | None = None  # path of the recorded clip
    figures: dict[str, float] = field(default_factory=dict)  # by keys of MEASURES and of their weights
    beside: "list[Result]" = field(default_factory=list)  # the recording, and its words by Griffin-Lim, by these names
    speaker: str = ""  # as the list has it
    embedding: list[float] = field(default_factory=list)  # of the speaker who is heard; empty: not known
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


def add_likeness(results: Sequence[Result]) -> None:
    """Add the cosine of each sound's embedding to the mean of those of the speaker's recordings of other utterances.

    Here, as it depends on all of the list. Where there is one recording alone, its words' sounds are compared with it.
    """
    recorded = {
        result.name: (result.speaker, np.array(one.embedding))
        for result in results
        for one in result.beside
        if one.name == RECORDING and one.embedding
    }
    for result in results:
        own = {name: one for name, (speaker, one) in recorded.items() if speaker == result.speaker}
        others = [one for name, one in own.items() if name != result.name]
        for sound in (result, *result.beside):
            known = others or [one for one in own.values() if sound.name != RECORDING]
            if sound.embedding and known:
                mean = np.mean(known, axis=0)
                cosine = np.dot(mean, sound.embedding) / np.linalg.norm(mean) / np.linalg.norm(sound.embedding)
                sound.figures["likeness"] = float(cosine)


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


def tables(results: Sequence[Result], *, n_listed: int) -> tuple[Row, list[Row], list[Row]]:
    """The heading, utterances and averages, each followed by what it is shown beside; the n-th links to ``u<n>``."""
    measures = [one for one in MEASURES.values() if any(one.key in result.figures for result in results)]
    rows: list[Row] = []
    for number, result in enumerate(results):
        for name, one in [(result.name, result), *((f"{result.name}, {one.name}", one) for one in result.beside)]:
            rows.append((Link(name, f"u{number}"), *cells(measures, one.figures)))
    done = f"{len(results)} of {n_listed} (stopped)" if len(results) < n_listed else f"all {n_listed}"
    means = averages(results).items()
    foot: list[Row] = [(f"{done}, {name}" if name else done, *cells(measures, figures)) for name, figures in means]
    return ("utterance", *measures), rows, foot


def differences_beside(results: Sequence[Result]) -> dict[str, dict[str, Difference]]:
    """How far the averages are from those of each sound beside them, by its name and the measures' keys."""
    beside: dict[str, dict[str, dict[str, float]]] = {}
    for result in results:
        for one in result.beside:
            beside.setdefault(one.name, {})[result.name] = one.figures
    return find_differences(list(MEASURES.values()), {one.name: one.figures for one in results}, beside)


def save_results(path: Path, results: Sequence[Result], *, n_listed: int, settings: dict[str, Any]) -> None:
    """Write ``settings``, averages and utterances as JSON; rates are parts of 1, what is absent is null."""
    absent = dict.fromkeys([*MEASURES, "work"])
    rows = []
    for result in results:
        row = asdict(result) | absent | result.figures
        del row["figures"], row["key"], row["embedding"]
        row["beside"] = {one.name: {"heard": one.heard} | absent | one.figures for one in result.beside}
        rows.append(row)
    beside = averages(results)
    means = {"averages": beside.pop(""), "averages_beside": beside}
    apart = {
        name: {key: asdict(one) for key, one in found.items()} for name, found in differences_beside(results).items()
    }
    done = {"n_done": len(results), "n_listed": n_listed, "stopped": len(results) < n_listed}
    write_json(path, {"settings": settings, "extent": done, **means, "differences": apart, "utterances": rows})


def read_journal(path: Path) -> dict[str, Result]:
    """The latest result of each utterance by its name, of earlier runs, if there were any."""
    results: dict[str, Result] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        with suppress(ValueError):  # a line that a kill has cut short
            values = json.loads(line)
            results[values["name"]] = Result(**values | {"beside": [Result(**one) for one in values["beside"]]})
    return results


def add_to_journal(path: Path, result: Result) -> None:
    """Append a result; after a line that a kill has cut short it begins a new one."""
    with writing(path), path.open("a", encoding="utf-8") as file:
        file.write(f"\n{json.dumps(asdict(result))}")


def save_page(folder: Path, results: Sequence[Result], *, n_listed: int, title: str, facts: Mapping[str, Any]) -> None:
    """Write an HTML page that refers to the sounds and plots beside it."""
    (_, *measures), rows, foot = tables(results, n_listed=n_listed)
    files = ({kind: path for kind, path in one.files(folder).items() if path.is_file()} for one in results)
    html = render_page(
        "evaluation/page.html",
        title=title,
        n_listed=n_listed,
        results=results,
        measures=measures,
        means=averages(results)[""],
        worst={key: worst_of(measure, results) for key, measure in MEASURES.items()},
        anchors={result.name: f"u{number}" for number, result in enumerate(results)},
        rows=rows,
        foot=foot,
        differences=difference_rows(list(MEASURES.values()), differences_beside(results)),
        media=[{kind: quote(path.relative_to(folder).as_posix()) for kind, path in one.items()} for one in files],
        compared=compared,
        settings=setting_rows(facts),
    )
    write_text(folder / PAGE, html)


def compared(text: str, reference: str | None) -> list[tuple[str, bool]]:
    """A transcript in pieces, and whether each differs from the reference, if there is one."""
    words = text.split()
    matcher = difflib.SequenceMatcher(None, words if reference is None else reference.split(), words, autojunk=False)
    pieces = [(" ".join(words[start:end]), kind != "equal") for kind, _, _, start, end in matcher.get_opcodes()]
    return [piece for piece in pieces if piece[0]]
