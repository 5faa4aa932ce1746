"""The report as one HTML page: findings, charts, statistics, and the clips themselves."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict

from common.data_report.charts import Chart
from common.data_report.clip import MEASURES
from common.data_report.findings import KINDS
from common.data_report.summary import MOST_LISTED, DataReport
from common.data_report.words import CLIPS, Rows, character_tables, distribution_rows, link, list_rows, speaker_rows
from common.options import option_of
from common.pages import Cell, Link, Measure, cells, render_page


def page(report: DataReport, charts: Sequence[Chart]) -> str:
    """The HTML of the report."""
    by_kind = [(kind, KINDS[kind], found) for kind, found in report.by_kind().items()]
    measures = [MEASURES[name] for name in report.distributions]
    formats: Rows = [("samples", CLIPS), *((name, CLIPS.cell(n_clips)) for name, n_clips in report.formats.items())]
    return render_page(
        "data_report/page.html",
        title=str(report.dataset),
        headline=report.headline,
        report=report,
        charts=charts,
        measures=measures,
        most_rows=MOST_LISTED,
        kinds=[
            (Link(about.title, f"kind-{kind}"), CLIPS.cell(len(found)), about.level, about.advice)
            for kind, about, found in by_kind
        ],
        found=[
            (kind, about, [(link(report, one.index, one.wav), one.where, one.reason) for one in found])
            for kind, about, found in by_kind
        ],
        tables=[
            ("Lists", list_rows(report)),
            ("Over the clips", distribution_rows(report)),
            ("Speakers", speaker_rows(report)),
            ("Files", formats),
            *character_tables(report),
        ],
        clips=_clip_rows(report, measures),
        clip_ids=[f"clip{index}" for index in report.listed],
        settings=[
            ("symbol set", report.text.symbol_set),
            ("cleaners", " ".join(report.text.cleaners) or "none"),
            *((name.replace("_", " "), str(value)) for name, value in asdict(report.audio).items()),
            *((option_of(name), f"{value:g}") for name, value in asdict(report.limits).items()),
        ],
    )


def _clip_rows(report: DataReport, measures: Sequence[Measure]) -> Rows:
    """Each clip of the page with its figures, the kinds of its findings, and its text."""
    kinds: dict[int, dict[str, Link]] = defaultdict(dict)
    for finding in report.findings:
        kinds[finding.index][finding.kind] = Link(KINDS[finding.kind].title, f"kind-{finding.kind}")
    has_speakers = any(clip.utterance.speaker for clip in report.listed.values())
    shown = (("speaker",) if has_speakers else ()) + (("findings",) if report.findings else ())
    rows: Rows = [("recording", "line", *shown, *measures, "text")]
    for index, clip in report.listed.items():
        item = clip.utterance
        optional: dict[str, Cell] = {"speaker": item.speaker or "", "findings": tuple(kinds[index].values())}
        chosen = (optional[name] for name in shown)
        rows.append((item.wav, item.where, *chosen, *cells(measures, clip.figures), item.text))
    return rows
