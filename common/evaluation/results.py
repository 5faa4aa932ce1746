"""Figures of each utterance and of all of them: averages, a verdict, tables, files, and a journal for resuming."""

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
SYNTHESIZED, RECORDING = "synthesized", "recording"  # sounds of an utterance, beside GRIFFIN_LIM
MEASURES = read_measures("evaluation/measures.tsv")
VERDICTS = read_table("evaluation/verdicts.tsv")  # of a measure, the best first: what a figure up to a limit means
N_SAMPLES = 5000  # sets of utterances that are drawn
CONFIDENCE = 95  # %
SEED = 0
Figures = Mapping[str, float]  # of an utterance, by keys of measures and of their weights


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
    error: str | None = None  # why a figure is missing

    def add(self, figures: Figures) -> None:
        """Add the figures that have a value; NaN is none."""
        self.figures |= {key: value for key, value in figures.items() if value == value}

    def files(self, folder: Path) -> dict[str, Path]:
        """The files that an evaluation in ``folder`` has of it."""
        names = {SYNTHESIZED, "plot", *(one.name for one in self.beside)}
        return {kind: path for kind, path in files_of(folder, self.name).items() if kind in names}

    def is_complete(self, folder: Path) -> bool:
        """Whether it has all of its figures and files."""
        return self.error is None and all(path.is_file() for path in self.files(folder).values())


def add_likeness(results: Sequence[Result]) -> None:
    """Add the cosine of each sound's embedding to the mean of those of the speaker's recordings of other utterances.

    Where there is one recording alone, its words' sounds are compared with it.
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
    """The weighted mean of a figure over the rows that have it: of error rates, all errors by all words."""
    known = [row for row in rows if measure.key in row]
    weights = [row[measure.weight] for row in known] if measure.weight else None
    return float(np.average([row[measure.key] for row in known], weights=weights)) if known else None


@dataclass(frozen=True)
class Difference:
    """The mean of one system less that of another, and its interval."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0

    def show(self, measure: Measure) -> str:
        """The difference as text, with an asterisk if it is clear."""
        texts = [format(one * measure.scale, f"+{measure.form}") for one in (self.value, self.low, self.high)]
        return "{} ({} to {})".format(*texts) + "*" * self.is_clear


def find_difference(measure: Measure, pairs: Sequence[tuple[Figures, Figures]]) -> Difference | None:
    """The difference of a measure's averages over pairs of figures of the same utterances, first less second.

    Utterances are drawn with replacement, both sides together (Bisani and Ney 2004). None for fewer than two pairs
    that have the figure.
    """
    known = [pair for pair in pairs if all(one.get(measure.key) is not None for one in pair)]
    if len(known) < 2:
        return None
    drawn = np.random.default_rng(SEED).multinomial(len(known), np.full(len(known), 1 / len(known)), size=N_SAMPLES)
    counts = np.vstack([np.ones(len(known)), drawn])  # the first set is that of all utterances: (1 + N_SAMPLES, N)
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
    """Differences by the keys of the measures that have a better side, of systems' figures by utterances' names."""
    pairs = [(figures, other[name]) for name, figures in own.items() if name in other]
    found = ((one.key, find_difference(one, pairs)) for one in measures if one.better)
    return {key: one for key, one in found if one is not None}


@dataclass(frozen=True)
class Tile:
    """What one average says, for people who do not know the measure."""

    title: str
    measure: Measure
    value: str
    grade: str  # "good", "fair" or "bad"
    words: str  # a sentence
    beside: str  # that of the recordings, and whether they are better; empty if there is none

    def __str__(self) -> str:
        return f"{self.words}: {self.measure.name} {self.value}" + (f" ({self.beside})" if self.beside else "")


@dataclass(frozen=True)
class Summary:
    """All utterances together: of the voice or vocoder, by the name "", and of the sounds beside them."""

    averages: dict[str, dict[str, float | None]]  # by name and keys of MEASURES
    differences: dict[str, dict[str, Difference]]  # of "" from each other one

    @classmethod
    def of(cls, results: Sequence[Result]) -> "Summary":
        """The summary of results."""
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
        """Those that have a value."""
        return [one for one in MEASURES.values() if any(found[one.key] is not None for found in self.averages.values())]

    @property
    def tiles(self) -> list[Tile]:
        """What the few figures that decide say."""
        found: dict[str, Tile] = {}
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
            found[row["key"]] = Tile(row["title"], measure, shown, row["grade"], row["words"], beside)
        return [*found.values()]

    @property
    def rows(self) -> list[Row]:
        """A heading, and the averages by measure."""
        rows: list[Row] = [("average", SYNTHESIZED, *[*self.averages][1:])]
        return rows + [(one, *(one.cell(own[one.key]) for own in self.averages.values())) for one in self.measures]

    @property
    def difference_rows(self) -> list[Row]:
        """A heading, and the differences by measure; nothing if there are none."""
        rows: list[Row] = [(f"difference ({CONFIDENCE} %)", *(f"to {name}" for name in self.differences))]
        found = ((one, [own.get(one.key) for own in self.differences.values()]) for one in self.measures)
        rows += [(one, *(apart.show(one) if apart else "-" for apart in row)) for one, row in found if any(row)]
        return rows if len(rows) > 1 else []


def save_results(
    path: Path, results: Sequence[Result], summary: Summary, *, n_listed: int, settings: dict[str, Any]
) -> None:
    """Write ``settings``, averages and utterances as JSON; rates are parts of 1, what is absent is null."""
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


def save_page(
    folder: Path, results: Sequence[Result], summary: Summary, *, n_listed: int, title: str, facts: Mapping[str, Any]
) -> None:
    """Write an HTML page that refers to the sounds and plots beside it."""
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
    """A transcript in pieces, and whether each differs from the reference, if there is one."""
    words = text.split()
    matcher = difflib.SequenceMatcher(None, words if reference is None else reference.split(), words, autojunk=False)
    pieces = [(" ".join(words[start:end]), kind != "equal") for kind, _, _, start, end in matcher.get_opcodes()]
    return [piece for piece in pieces if piece[0]]
