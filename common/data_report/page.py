"""The report as one HTML page that needs nothing else: no network, no script, its charts inside."""

import base64
from collections.abc import Sequence
from dataclasses import asdict
from html import escape

from common.data_report.charts import Chart
from common.data_report.findings import KINDS, Finding
from common.data_report.summary import DataReport
from common.data_report.words import Rows, character_rows, distribution_rows, headline, list_rows, speaker_rows

MOST_ROWS = 2000  # of a table: a browser must still open the page; report.json has all

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2329; background: #fff; margin: 0 auto; max-width: 76rem;
  padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid #d8dce1; padding-bottom: .2rem; }
h3 { font-size: 1rem; margin: 1.3rem 0 .2rem; }
p { margin: .2rem 0 .6rem; }
.headline { font-size: 1.1rem; }
.quiet { color: #5c6570; }
.level { font-size: .75rem; font-weight: 600; border-radius: .6rem; padding: .1rem .55rem; margin-left: .4rem; }
.refused { background: #f8d9d6; color: #8c1f16; }
.suspicious { background: #fbe8cf; color: #7a4706; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .22rem .7rem; border-bottom: 1px solid #e6e9ed; vertical-align: top; }
th { color: #5c6570; font-weight: 600; }
th:first-child, td:first-child, th:last-child, td:last-child, .words th, .words td { text-align: left; }
.words td:first-child { white-space: nowrap; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(24rem, 1fr)); gap: 1.2rem; }
figure { margin: 0; }
figcaption { font-size: .85rem; color: #5c6570; }
figcaption b { color: #1d2329; }
img { width: 100%; height: auto; }
details { margin: .3rem 0; }
summary { cursor: pointer; }
"""


def page(report: DataReport, charts: Sequence[Chart]) -> str:
    """The HTML. Every word that comes from a list, a transcript or a file's name is escaped."""
    title = f"Data report: {report.dataset}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="headline">{escape(headline(report))}</p>',
        *(f"<p>Note: {escape(note)}.</p>" for note in report.notes),
        "<h2>Findings</h2>",
        *_findings(report),
        "<h2>Charts</h2>",
        f'<div class="charts">{"".join(_figure(chart) for chart in charts)}</div>',
        "<h2>Figures</h2>",
        _table(list_rows(report)),
        "<h3>Over the clips</h3>",
        _table(distribution_rows(report)),
        "<h3>Speakers</h3>",
        _table(speaker_rows(report)),
        "<h3>Files</h3>",
        _table([("samples", "clips"), *((name, str(count)) for name, count in report.formats.items())]),
    ]
    for heading, characters in (
        (f"Characters that {report.text.symbol_set} lacks", report.unknown),
        ("Characters that the cleaners rewrite", report.rewritten),
    ):
        if characters:
            parts += [f"<h3>{escape(heading)}</h3>", _table(character_rows(characters), words=True)]
    parts += ["<h2>Settings</h2>", _table(_settings(report), words=True)]
    return _document(title, "\n".join(parts))


def _document(title: str, body: str) -> str:
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _findings(report: DataReport) -> list[str]:
    if not report.findings:
        return ["<p>None: every clip can be read, and none differs much from the others.</p>"]
    parts = [
        '<p class="quiet">Refused: extraction or training stops there, or leaves the clip out. Suspicious: it would '
        "be learned as it is; listen to it.</p>"
    ]
    for kind, found in report.by_kind().items():
        about = KINDS[kind]
        parts.append(
            f"<details{' open' if len(found) <= 50 else ''}><summary><b>{escape(about.title)}</b> ({len(found)})"
            f'<span class="level {about.level}">{about.level}</span></summary>'
            f"<p>What to do: {escape(about.advice)}.</p>{_finding_table(found)}</details>"
        )
    return parts


def _finding_table(found: Sequence[Finding]) -> str:
    rows = [(finding.where, finding.wav, finding.reason) for finding in found]
    return _table([("line", "recording", "reason"), *rows], words=True)


def _table(rows: Rows, *, words: bool = False) -> str:
    """A table whose first row is its heading."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
    body = "\n".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[1 : 1 + MOST_ROWS]
    )
    more = len(rows) - 1 - MOST_ROWS
    rest = f'<p class="quiet">... and {more} more in report.json</p>' if more > 0 else ""
    kind = ' class="words"' if words else ""
    return (
        f'<div class="scroll"><table{kind}><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>{rest}'
    )


def _figure(chart: Chart) -> str:
    data = base64.b64encode(chart.png).decode("ascii")
    words = f"{chart.title}: {chart.caption}"
    return (
        f'<figure><img alt="{escape(words)}" src="data:image/png;base64,{data}">'
        f"<figcaption><b>{escape(chart.title)}</b>: {escape(chart.caption)}</figcaption></figure>"
    )


def _settings(report: DataReport) -> Rows:
    rows: Rows = [("setting", "value"), ("symbol set", report.text.symbol_set)]
    rows.append(("cleaners", " ".join(report.text.cleaners) or "none"))
    rows += [(name.replace("_", " "), str(value)) for name, value in asdict(report.audio).items()]
    rows += [(f"--report-{name.replace('_', '-')}", f"{value:g}") for name, value in asdict(report.limits).items()]
    return rows
