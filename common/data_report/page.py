"""The report as one HTML page that needs nothing else: no network, no script, its charts inside."""

import base64
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from string import Template

from common.data_report.charts import Chart
from common.data_report.findings import KINDS
from common.data_report.summary import DataReport
from common.data_report.words import Rows, character_tables, distribution_rows, headline, list_rows, speaker_rows

TEMPLATE = Path(__file__).parent / "page.html"
MOST_ROWS = 2000  # of a table: a browser must still open the page; report.json has all


def page(report: DataReport, charts: Sequence[Chart]) -> str:
    """The HTML. Every word that comes from a list, a transcript or a file's name is escaped."""
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(f"Data report: {report.dataset}"),
        headline=escape(headline(report)),
        notes="".join(f"<p>Note: {escape(note)}.</p>\n" for note in report.notes),
        findings=_findings(report),
        charts="".join(map(_figure, charts)),
        lists=_table(list_rows(report)),
        distributions=_table(distribution_rows(report)),
        speakers=_table(speaker_rows(report)),
        files=_table([("samples", "clips"), *((name, str(count)) for name, count in report.formats.items())]),
        characters="".join(
            f"<h3>{escape(title[0].upper() + title[1:])}</h3>\n{_table(rows, words=True)}\n"
            for title, rows in character_tables(report)
        ),
        settings=_table(_settings(report), words=True),
    )


def _findings(report: DataReport) -> str:
    if not report.findings:
        return "<p>None: every clip can be read, and none differs much from the others.</p>"
    parts = [
        '<p class="quiet">Refused: extraction or training stops there, or leaves the clip out. Suspicious: it would '
        "be learned as it is; listen to it.</p>"
    ]
    for kind, found in report.by_kind().items():
        about = KINDS[kind]
        rows: Rows = [
            ("line", "recording", "reason"),
            *((finding.where, finding.wav, finding.reason) for finding in found),
        ]
        parts.append(
            f"<details{' open' if len(found) <= 50 else ''}><summary><b>{escape(about.title)}</b> ({len(found)})"
            f'<span class="level {about.level}">{about.level}</span></summary>'
            f"<p>What to do: {escape(about.advice)}.</p>{_table(rows, words=True)}</details>"
        )
    return "\n".join(parts)


def _table(rows: Rows, *, words: bool = False) -> str:
    """A table whose first row is its heading."""
    head, *body = (
        "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) for tag, row in zip(["th", *["td"] * MOST_ROWS], rows)
    )
    more = len(rows) - 1 - MOST_ROWS
    kind = ' class="words"' if words else ""
    return (
        f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead><tbody>\n'
        + "\n".join(f"<tr>{row}</tr>" for row in body)
        + "\n</tbody></table></div>"
        + (f'<p class="quiet">... and {more} more in report.json</p>' if more > 0 else "")
    )


def _figure(chart: Chart) -> str:
    data = base64.b64encode(chart.png).decode("ascii")
    title, caption = escape(chart.title), escape(chart.caption)
    return (
        f'<figure><img alt="{title}: {caption}" src="data:image/png;base64,{data}">'
        f"<figcaption><b>{title}</b>: {caption}</figcaption></figure>"
    )


def _settings(report: DataReport) -> Rows:
    rows: Rows = [("setting", "value"), ("symbol set", report.text.symbol_set)]
    rows.append(("cleaners", " ".join(report.text.cleaners) or "none"))
    rows += [(name.replace("_", " "), str(value)) for name, value in asdict(report.audio).items()]
    rows += [(f"--report-{name.replace('_', '-')}", f"{value:g}") for name, value in asdict(report.limits).items()]
    return rows
