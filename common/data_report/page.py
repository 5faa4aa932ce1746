"""The report as one HTML page: findings, charts, statistics, and the clips themselves."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, replace

from common.data_report.charts import Chart
from common.data_report.clip import Clip
from common.data_report.findings import KINDS
from common.data_report.summary import FIGURES, DataReport, figures
from common.data_report.words import (
    Rows,
    character_tables,
    count,
    distribution_rows,
    headline,
    list_rows,
    shown,
    speaker_rows,
)
from common.pages import Cell, Link, Number, Row, Term, render_page

MOST_ROWS = 2000  # of a table: a browser must still open the page; report.json has all


def page(report: DataReport, charts: Sequence[Chart]) -> str:
    """The HTML of the report."""
    listed = _listed_clips(report)
    by_kind = {kind: (KINDS[kind], found) for kind, found in report.by_kind().items()}
    terms = [Term(name, FIGURES[name].meaning, FIGURES[name].unit) for name in report.distributions]
    return render_page(
        "data_report/page.html",
        title=str(report.dataset),
        headline=headline(report),
        report=report,
        charts=charts,
        terms=terms,
        most_rows=MOST_ROWS,
        kinds=[
            (Link(about.title, f"kind-{kind}"), count(len(found)), about.level, about.advice)
            for kind, (about, found) in by_kind.items()
        ],
        found=[
            (kind, about, [(_link(one.wav, one.index, listed), one.where, one.reason) for one in found])
            for kind, (about, found) in by_kind.items()
        ],
        tables=_tables(report, listed),
        clips=_clips(report, listed, terms),
        clip_ids=list(map(_anchor, listed)),
        settings=_settings(report),
    )


def _listed_clips(report: DataReport) -> dict[int, Clip]:
    """The clips that the page lists, by index: of a large corpus extremes, those with findings, and the first ones."""
    ends = [clip.utterance.index for pair in report.extremes.values() for clip in pair]
    order = [*ends, *(finding.index for finding in report.findings), *range(len(report.clips))]
    chosen = set(list(dict.fromkeys(order))[:MOST_ROWS])
    return {clip.utterance.index: clip for clip in report.clips if clip.utterance.index in chosen}


def _anchor(index: int) -> str:
    return f"clip{index}"


def _link(wav: str, index: int, listed: dict[int, Clip]) -> Link:
    return Link(wav, _anchor(index) if index in listed else "")


def _tables(report: DataReport, listed: dict[int, Clip]) -> list[tuple[str, Rows]]:
    """Titles and tables over all clips; the smallest and the largest value lead to their clips."""
    heading, *rows = distribution_rows(report)
    linked: Rows = [heading]
    for row, pair in zip(rows, report.extremes.values()):
        low, high = (_link_to(cell, clip, listed) for cell, clip in zip((row[1], row[5]), pair))
        linked.append((row[0], low, *row[2:5], high, row[6]))
    return [
        ("Lists", list_rows(report)),
        ("Over the clips", linked),
        ("Speakers", speaker_rows(report)),
        ("Files", [("samples", "clips"), *((name, count(n_clips)) for name, n_clips in report.formats.items())]),
        *((title[0].upper() + title[1:], rows) for title, rows in character_tables(report)),
    ]


def _link_to(cell: Cell, clip: Clip, listed: dict[int, Clip]) -> Cell:
    index = clip.utterance.index
    if not isinstance(cell, Number) or index not in listed:
        return cell
    return replace(cell, anchor=_anchor(index), hint=f"{clip.utterance.wav} ({clip.utterance.where})")


def _clips(report: DataReport, listed: dict[int, Clip], terms: Sequence[Term]) -> list[Row]:
    """A heading, and each clip with its figures, the kinds of its findings, and its text."""
    kinds: dict[int, dict[str, Link]] = defaultdict(dict)
    for finding in report.findings:
        kinds[finding.index][finding.kind] = Link(KINDS[finding.kind].title, f"kind-{finding.kind}")
    speakers = any(clip.utterance.speaker for clip in listed.values())
    rows: list[Row] = [
        ("recording", "line", *["speaker"] * speakers, *["findings"] * bool(report.findings), *terms, "text")
    ]
    for index, clip in listed.items():
        item, cells = clip.utterance, list[Cell]([clip.utterance.wav, clip.utterance.where])
        cells += [item.speaker or ""] * speakers + [tuple(kinds[index].values())] * bool(report.findings)
        values = {} if clip.sound is None else figures(clip, clip.sound)
        cells += [shown(values.get(term.name), FIGURES[term.name].digits) for term in terms]
        rows.append((*cells, item.text))
    return rows


def _settings(report: DataReport) -> Rows:
    rows: Rows = [("symbol set", report.text.symbol_set), ("cleaners", " ".join(report.text.cleaners) or "none")]
    rows += [(name.replace("_", " "), str(value)) for name, value in asdict(report.audio).items()]
    rows += [(f"--report-{name.replace('_', '-')}", f"{value:g}") for name, value in asdict(report.limits).items()]
    return rows
