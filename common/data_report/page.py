"""The report as one HTML page: findings, charts, statistics, and the clips themselves."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from html import escape

from common.data_report.charts import Chart
from common.data_report.clip import Clip
from common.data_report.findings import KINDS, Finding
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
from common.pages import Cell, Link, Number, Row, Section, Term, glossary, render_page, render_table
from common.pages.charts import data_url

MOST_ROWS = 2000  # of a table: a browser must still open the page; report.json has all


def page(report: DataReport, charts: Sequence[Chart]) -> str:
    """The HTML. Every word that comes from a list, a transcript or a file's name is escaped."""
    listed = _listed_clips(report)
    drawn = "".join(map(_chart, charts))
    terms = [Term(name, FIGURES[name].meaning, FIGURES[name].unit) for name in report.distributions]
    sections = [
        Section("findings", "Findings", _findings(report, listed)),
        Section("charts", "Charts", f'<div class="charts">{drawn}</div>' if charts else "<p>None.</p>"),
        Section("figures", "Figures", _statistics(report, listed)),
        Section("clips", "Clips", _clips(report, listed, terms)),
        Section("meaning", "What the figures mean", glossary(terms)),
        Section("settings", "Settings", _table(_settings(report), words=(1,))),
    ]
    title = str(report.dataset)
    return render_page(kind="Data report", title=title, headline=headline(report), sections=sections)


def _listed_clips(report: DataReport) -> dict[int, Clip]:
    """The clips that the page lists, by index: of a large corpus extremes, those with findings, and the first ones."""
    ends = [clip.utterance.index for pair in report.extremes.values() for clip in pair]
    order = [*ends, *(finding.index for finding in report.findings), *range(len(report.clips))]
    chosen = set(list(dict.fromkeys(order))[:MOST_ROWS])
    return {clip.utterance.index: clip for clip in report.clips if clip.utterance.index in chosen}


def _findings(report: DataReport, listed: dict[int, Clip]) -> str:
    notes = "".join(f"<p>Note: {escape(note)}.</p>\n" for note in report.notes)
    if not report.findings:
        return f"{notes}<p>None: every clip can be read, and none differs much from the others.</p>"
    by_kind = report.by_kind()
    kinds: Rows = [("what", "clips", "level", "what to do")]
    for kind, found in by_kind.items():
        about = KINDS[kind]
        kinds.append((Link(about.title, f"kind-{kind}"), count(len(found)), about.level, about.advice))
    parts = [
        f'{notes}<p class="quiet">Refused: extraction or training stops there, or leaves the clip out. Suspicious: it '
        "would be learned as it is; listen to it.</p>",
        _table(kinds, words=(3,)),
    ]
    for kind, found in by_kind.items():
        about = KINDS[kind]
        rows: Rows = [("recording", "line", "reason"), *(_finding_row(finding, listed) for finding in found)]
        parts.append(
            f'<details id="kind-{kind}"{" open" if len(found) <= 50 else ""}><summary><b>{escape(about.title)}</b> '
            f'({len(found)})<span class="level {about.level}">{about.level}</span></summary>'
            f"<p>What to do: {escape(about.advice)}.</p>{_table(rows, words=(2,))}</details>"
        )
    return "\n".join(parts)


def _finding_row(finding: Finding, listed: dict[int, Clip]) -> tuple[Cell, ...]:
    wav: Cell = Link(finding.wav, _anchor(finding.index)) if finding.index in listed else finding.wav
    return wav, finding.where, finding.reason


def _statistics(report: DataReport, listed: dict[int, Clip]) -> str:
    """Tables over all clips; the smallest and the largest value lead to their clips."""
    heading, *rows = distribution_rows(report)
    linked: Rows = [heading]
    for row, pair in zip(rows, report.extremes.values()):
        low, high = (_link_to(cell, clip, listed) for cell, clip in zip((row[1], row[5]), pair))
        linked.append((row[0], low, *row[2:5], high, row[6]))
    files: Rows = [("samples", "clips"), *((name, count(n_clips)) for name, n_clips in report.formats.items())]
    tables = [
        ("Lists", list_rows(report)),
        ("Over the clips", linked),
        ("Speakers", _speakers(report)),
        ("Files", files),
        *((title[0].upper() + title[1:], rows) for title, rows in character_tables(report)),
    ]
    return "\n".join(f"<h3>{escape(title)}</h3>\n{_table(rows)}" for title, rows in tables if len(rows) > 1)


def _speakers(report: DataReport) -> Rows:
    """The terminal's table, the unit of pitch in the headings instead of a column."""
    heading, *rows = (row[:-1] for row in speaker_rows(report))
    return [(*heading[:5], *(replace(cell, unit="Hz") for cell in heading[5:] if isinstance(cell, Term))), *rows]


def _link_to(cell: Cell, clip: Clip, listed: dict[int, Clip]) -> Cell:
    index = clip.utterance.index
    if not isinstance(cell, Number) or index not in listed:
        return cell
    return replace(cell, link=_anchor(index), hint=f"{clip.utterance.wav} ({clip.utterance.where})")


def _clips(report: DataReport, listed: dict[int, Clip], terms: Sequence[Term]) -> str:
    """Each clip with its figures, the kinds of its findings, and its text."""
    kinds: dict[int, dict[str, Link]] = {}
    for finding in report.findings:
        link = Link(KINDS[finding.kind].title, f"kind-{finding.kind}")
        kinds.setdefault(finding.index, {})[finding.kind] = link
    speakers = any(clip.utterance.speaker for clip in listed.values())
    rows = []
    for index, clip in listed.items():
        item, cells = clip.utterance, list[Cell]([clip.utterance.wav, clip.utterance.where])
        cells += [item.speaker or ""] * speakers + [tuple(kinds.get(index, {}).values())] * bool(kinds)
        values = {} if clip.sound is None else figures(clip, clip.sound)
        cells += [shown(values.get(term.name), FIGURES[term.name].digits) for term in terms]
        rows.append(Row([*cells, item.text], _anchor(index)))
    headings: list[str | Term] = ["recording", "line", *["speaker"] * speakers, *["findings"] * bool(kinds)]
    headings += [*terms, "text"]
    more = len(report.clips) - len(rows)
    rest = f'<p class="quiet">... and {more} more in report.json</p>' if more else ""
    return render_table(headings, rows, one_line=True) + rest


def _anchor(index: int) -> str:
    return f"clip{index}"


def _table(rows: Rows, *, words: Sequence[int] = ()) -> str:
    """A table whose first row is its heading."""
    headings, *body = rows
    more = len(body) - MOST_ROWS
    rest = f'<p class="quiet">... and {more} more in report.json</p>' if more > 0 else ""
    named = [str(heading) if not isinstance(heading, Term) else heading for heading in headings]
    return render_table(named, [Row(row) for row in body[:MOST_ROWS]], words=words) + rest


def _chart(chart: Chart) -> str:
    title, caption = escape(chart.title), escape(chart.caption)
    return (
        f'<figure><img class="chart" alt="{title}: {caption}" src="{data_url(chart.svg)}">'
        f"<figcaption><b>{title}</b>: {caption}</figcaption></figure>"
    )


def _settings(report: DataReport) -> Rows:
    rows: Rows = [("setting", "value"), ("symbol set", report.text.symbol_set)]
    rows.append(("cleaners", " ".join(report.text.cleaners) or "none"))
    rows += [(name.replace("_", " "), str(value)) for name, value in asdict(report.audio).items()]
    rows += [(f"--report-{name.replace('_', '-')}", f"{value:g}") for name, value in asdict(report.limits).items()]
    return rows
