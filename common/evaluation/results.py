"""Figures of each utterance and of all together: averages, a verdict, tables, files, and a journal for resuming."""

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from scipy.spatial.distance import cosine

from common.evaluation.options import GRIFFIN_LIM
from common.files import write_json, write_text, writing
from common.pages.render import render_page
from common.pages.tables import Link, Measure, Row, cells, read_measures, read_table, setting_rows

JOURNAL, PAGE = "utterances.jsonl", "index.html"  # files of an evaluation
SYNTHESIZED, RECORDING = "synthesized", "recording"  # sounds of an utterance, besides GRIFFIN_LIM
MEASURES = read_measures("evaluation/measures.tsv")
VERDICTS = read_table("evaluation/verdicts.tsv")  # what a figure up to a limit means; each measure's best first
N_SAMPLES = 5000  # bootstrap samples of the utterances
CONFIDENCE = 95  # %
SEED = 0
Figures = Mapping[str, float]  # of an utterance, by keys of measures and of their weights


def files_of(folder: Path, name: str) -> dict[str, Path]:
    """Return the paths of an utterance's sounds (lossless WAV) and its plot in an evaluation's ``folder``."""
    sound, plot = (Path(name).with_suffix(suffix) for suffix in (".wav", ".png"))
    return {
        RECORDING: folder / "recorded" / sound,
        GRIFFIN_LIM: folder / GRIFFIN_LIM / sound,
        SYNTHESIZED: folder / "synthesised" / sound,
        "plot": folder / "plots" / plot,
    }


@dataclass
class Result:
    """What is known about an utterance; filled in as it is measured."""

    name: str  # of its files, "a/b.wav"
    text: str  # as in the list
    key: str = ""  # digest of what it depends on, `EvaluationItem.key`
    reference: str | None = None  # the words to recognize, normalized by the recognizer
    heard: str | None = None  # transcript of the sound
    recording: str | None = None  # path of the recorded clip
    figures: dict[str, float] = field(default_factory=dict)  # by keys of MEASURES and of their weights
    beside: "list[Result]" = field(default_factory=list)  # results for the recording and for Griffin-Lim
    speaker: str = ""  # as in the list
    embedding: list[float] = field(default_factory=list)  # of the sound's speaker; empty: unknown
    cut: bool = False  # the voice did not end it and was stopped
    error: str | None = None  # why a figure is missing

    def add(self, figures: Figures) -> None:
        """Add the figures that aren't NaN."""
        self.figures |= {key: value for key, value in figures.items() if value == value}

    def files(self, folder: Path) -> dict[str, Path]:
        """Return its files in an evaluation's ``folder``."""
        names = {SYNTHESIZED, "plot", *(one.name for one in self.beside)}
        return {kind: path for kind, path in files_of(folder, self.name).items() if kind in names}

    def is_complete(self, folder: Path) -> bool:
        """Whether it has all of its figures and files."""
        return self.error is None and all(path.is_file() for path in self.files(folder).values())


def add_likeness(results: Sequence[Result]) -> None:
    """Add each sound's cosine similarity to the mean embedding of the speaker's recordings of other utterances.

    If there is only one recording, the other sounds of its words are compared with it.
    """
    recorded = [(result, one) for result in results for one in result.beside if one.name == RECORDING and one.embedding]
    for result in results:
        own = [(other, one.embedding) for other, one in recorded if other.speaker == result.speaker]
        others = [embedding for other, embedding in own if other is not result]
        for sound in (result, *result.beside):
            known = others or [embedding for _, embedding in own if sound.name != RECORDING]
            if sound.embedding and known:
                sound.figures["likeness"] = 1 - float(cosine(np.mean(known, axis=0), sound.embedding))


def mean(measure: Measure, rows: Sequence[Mapping[str, float]]) -> float | None:
    """Return a figure's weighted mean over the rows that have it; for error rates, all errors divided by all words."""
    known = [row for row in rows if measure.key in row]
    weights = [row[measure.weight] for row in known] if measure.weight else None
    return float(np.average([row[measure.key] for row in known], weights=weights)) if known else None


@dataclass(frozen=True)
class Difference:
    """One system's mean minus another's, and its interval."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    def show(self, measure: Measure) -> str:
        """Format the difference, with an asterisk if it is clear."""
        texts = [format(one * measure.scale, f"+{measure.form}") for one in (self.value, self.low, self.high)]
        return "{} ({} to {})".format(*texts) + "*" * self.is_clear


def find_difference(measure: Measure, pairs: Sequence[tuple[Figures, Figures]]) -> Difference | None:
    """Return the difference of a measure's means, first minus second, over pairs of figures of the same utterances.

    The interval comes from a paired bootstrap over utterances (Bisani and Ney 2004). None if fewer than two pairs have
    the figure.
    """
    known = [pair for pair in pairs if all(one.get(measure.key) is not None for one in pair)]
    if len(known) < 2:
        return None
    drawn = np.random.default_rng(SEED).multinomial(len(known), np.full(len(known), 1 / len(known)), size=N_SAMPLES)
    counts = np.vstack([np.ones(len(known)), drawn])  # the first row is the full set: (1 + N_SAMPLES, N)
    means = []
    for side in zip(*known):
        values = np.array([one[measure.key] for one in side])
        weights = np.array([one[measure.weight] if measure.weight else 1.0 for one in side])
        means.append(counts @ (values * weights) / (counts @ weights))
    value, *samples = means[0] - means[1]
    return Difference(float(value), *np.percentile(samples, [(100 - CONFIDENCE) / 2, (100 + CONFIDENCE) / 2]).tolist())


def find_differences(
    measures: Iterable[Measure], own: Mapping[str, Figures], other: Mapping[str, Figures]
) -> dict[str, Difference]:
    """Return differences by measure key from two systems' figures by utterance; skip measures with no better side."""
    pairs = [(figures, other[name]) for name, figures in own.items() if name in other]
    found = ((one.key, find_difference(one, pairs)) for one in measures if one.better)
    return {key: one for key, one in found if one is not None}


@dataclass(frozen=True)
class Summary:
    """All utterances together: of the voice or vocoder, under the name "", and of the sounds to compare with."""

    averages: dict[str, dict[str, float | None]]  # by name and key of MEASURES
    differences: dict[str, dict[str, Difference]]  # "" minus each other name

    @classmethod
    def of(cls, results: Sequence[Result]) -> "Summary":
        """Summarize results."""
        figures: dict[str, dict[str, Figures]] = {"": {one.name: one.figures for one in results}}
        for result in results:
            for one in result.beside:
                figures.setdefault(one.name, {})[result.name] = one.figures
        measures = MEASURES.values()
        averages = {name: {one.key: mean(one, [*own.values()]) for one in measures} for name, own in figures.items()}
        apart = {name: find_differences(measures, figures[""], own) for name, own in figures.items() if name}
        return cls(averages, apart)

    @property
    def measures(self) -> list[Measure]:
        """The measures that have a value."""
        return [one for one in MEASURES.values() if any(found[one.key] is not None for found in self.averages.values())]

    @property
    def tiles(self) -> list[dict[str, Any]]:
        """The meanings of the most important averages: rows of `VERDICTS` with a ``measure``, ``value`` and ``beside``.

        The latter compares the value with the recordings' and is empty if there is none.
        """
        found: dict[str, dict[str, Any]] = {}
        for row in VERDICTS:
            measure, limit = MEASURES[row["key"]], float(row["limit"])
            value, real = (self.averages.get(name, {}).get(measure.key) for name in ("", RECORDING))
            if value is None or row["key"] in found or (value < limit if measure.better == "high" else value > limit):
                continue
            beside, apart = "", self.differences.get(RECORDING, {}).get(measure.key)
            if apart is not None and real is not None:
                is_better = (apart.value > 0) == (measure.better == "high")
                how = "no clear difference" if not apart.is_clear else f"clearly {'worse' if is_better else 'better'}"
                beside = f"recordings {measure.show(real)}, {how}"
            shown = f"{measure.show(value)} {measure.unit}".rstrip()
            found[row["key"]] = {**row, "measure": measure, "value": shown, "beside": beside}
        return [*found.values()]

    @property
    def rows(self) -> list[Row]:
        """A heading, and the averages by measure."""
        rows: list[Row] = [("average", SYNTHESIZED, *[*self.averages][1:])]
        return rows + [(one, *(one.cell(own[one.key]) for own in self.averages.values())) for one in self.measures]

    @property
    def difference_rows(self) -> list[Row]:
        """A heading, and the differences by measure; empty if there are none."""
        rows: list[Row] = [(f"difference ({CONFIDENCE} %)", *(f"from {name}" for name in self.differences))]
        found = ((one, [own.get(one.key) for own in self.differences.values()]) for one in self.measures)
        rows += [(one, *(apart.show(one) if apart else "-" for apart in row)) for one, row in found if any(row)]
        return rows if len(rows) > 1 else []


def save_results(
    path: Path, results: Sequence[Result], summary: Summary, *, n_listed: int, settings: dict[str, Any]
) -> None:
    """Write ``settings``, averages and utterances as JSON; rates are fractions of 1, missing values are null."""
    absent = dict.fromkeys([*MEASURES, "work"])
    rows = []
    for result in results:
        row = asdict(result) | absent | result.figures
        del row["figures"], row["key"], row["embedding"]
        row["beside"] = {one.name: {"heard": one.heard} | absent | one.figures for one in result.beside}
        rows.append(row)
    found = asdict(summary)
    means = {"averages": found["averages"].pop(""), "averages_beside": found["averages"]}
    done = {"n_done": len(results), "n_listed": n_listed, "stopped": len(results) < n_listed}
    values = {"settings": settings, "extent": done, **means, "differences": found["differences"], "utterances": rows}
    write_json(path, values)


def read_journal(path: Path) -> dict[str, Result]:
    """Return each utterance's latest result from earlier runs, by name."""
    results: dict[str, Result] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        with suppress(ValueError):  # a line truncated by a kill
            values = json.loads(line)
            results[values["name"]] = Result(**values | {"beside": [Result(**one) for one in values["beside"]]})
    return results


def add_to_journal(path: Path, result: Result) -> None:
    """Append a result on a new line, even after a line truncated by a kill."""
    with writing(path), path.open("a", encoding="utf-8") as file:
        file.write(f"\n{json.dumps(asdict(result))}")


def save_page(
    folder: Path, results: Sequence[Result], summary: Summary, *, n_listed: int, title: str, facts: Mapping[str, Any]
) -> None:
    """Write an HTML page that links to the sounds and plots next to it."""
    anchors = {result.name: Link(result.name, f"u{number}") for number, result in enumerate(results)}
    main = [one for one in summary.measures if one.is_main]
    files = ({kind: path for kind, path in one.files(folder).items() if path.is_file()} for one in results)
    html = render_page(
        "evaluation/page.html",
        title=title,
        n_listed=n_listed,
        results=results,
        summary=summary,
        anchors=anchors,
        headings=("utterance", *main),
        rows=[(anchors[one.name], *cells(main, one.figures)) for one in results],
        media=[{kind: quote(path.relative_to(folder).as_posix()) for kind, path in one.items()} for one in files],
        compared=compared,
        settings=setting_rows(facts),
    )
    write_text(folder / PAGE, html)


def compared(text: str, reference: str | None) -> list[tuple[str, bool]]:
    """Split a transcript into pieces, and return whether each differs from the reference, if there is one."""
    words = text.split()
    matcher = difflib.SequenceMatcher(None, words if reference is None else reference.split(), words, autojunk=False)
    pieces = [(" ".join(words[start:end]), kind != "equal") for kind, _, _, start, end in matcher.get_opcodes()]
    return [piece for piece in pieces if piece[0]]
