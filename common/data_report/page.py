"""The report's tables, which the terminal and the HTML page both show, and the text and the page around them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict

from common.data_report.charts import Chart
from common.data_report.clip import MEASURES
from common.data_report.findings import KINDS
from common.data_report.summary import MOST_LISTED, PERCENTILES, DataReport, hours, values_of
from common.options import option_of
from common.pages import Cell, Link, Measure, Row, cells, render_page, text_table
from common.text import name_symbol

SHOWN = 10  # findings of a kind on the terminal; the page has them all
SHOWN_SPEAKERS = 20

Rows = list[Row]  # the first is the heading

CLIPS = Measure("n_clips", "clips", form=".0f")
LENGTH = Measure("seconds", "length", form=hours)
TIMES = Measure("count", "times", form=".0f")
SPEAKER_MEASURES = (
    CLIPS,
    LENGTH,
    Measure("speaking_rate", "symbols/s", meaning="median speaking rate"),
    Measure("level", "dBFS", meaning="median speech level"),
    Measure("pitch_low", "pitch 5 %", "Hz", ".0f", "5th percentile of pitch"),
    Measure("pitch_median", "median", "Hz", ".0f", "median pitch"),
    Measure("pitch_high", "95 %", "Hz", ".0f", "95th percentile of pitch"),
    Measure("pitch_mean", "mean", "Hz", ".0f", "mean pitch"),
    Measure("pitch_std", "std", "Hz", ".0f", "standard deviation of pitch"),
)


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
            (kind, about, [(_link(report, one.index, one.wav), one.where, one.reason) for one in found])
            for kind, about, found in by_kind
        ],
        tables=[
            ("Lists", _list_rows(report)),
            ("Over the clips", _distribution_rows(report)),
            ("Speakers", _speaker_rows(report)),
            ("Files", formats),
            *_character_tables(report),
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


def _link(report: DataReport, index: int, text: str) -> Link:
    """A link to a clip of the page, or its text alone where the page leaves the clip out."""
    return Link(text, f"clip{index}" if index in report.listed else "")


def _distribution_rows(report: DataReport) -> Rows:
    """Each figure over the clips; the smallest and the largest value lead to their clips."""
    rows: Rows = [("figure", "minimum", "5 %", "median", "95 %", "maximum", "unit")]
    for name, values in report.distributions.items():
        ends = dict(zip(("minimum", "maximum"), (clip.utterance for clip in report.extremes[name])))
        anchors = {key: (_link(report, one.index, "").anchor, f"{one.wav} ({one.where})") for key, one in ends.items()}
        numbers = (MEASURES[name].cell(values[key], *anchors.get(key, ())) for key in PERCENTILES)
        rows.append((Measure(name, name, meaning=MEASURES[name].meaning), *numbers, MEASURES[name].unit))
    return rows


def _speaker_rows(report: DataReport) -> Rows:
    """Each speaker's figures."""
    rows: Rows = [("speaker", *SPEAKER_MEASURES)]
    rows += [(name or "all", *cells(SPEAKER_MEASURES, figures)) for name, figures in report.speakers.items()]
    return rows


def _list_rows(report: DataReport) -> Rows:
    """Each list's clips and their length."""
    rows: Rows = [("list", CLIPS, LENGTH)]
    for index, path in enumerate(report.lists):
        clips = [clip for clip in report.clips if clip.utterance.list_index == index]
        rows.append((str(path), CLIPS.cell(len(clips)), LENGTH.cell(sum(values_of(clips, "duration")))))
    return rows


def _character_tables(report: DataReport) -> list[tuple[str, Rows]]:
    """Characters that the symbol set lacks, and those that the cleaners rewrite: titles and tables that have rows."""
    tables = []
    for title, characters in (
        (f"characters that {report.text.symbol_set} lacks", report.characters("unknown")),
        ("characters that the cleaners rewrite", report.characters("rewritten")),
    ):
        rows: Rows = [("character", TIMES, CLIPS, "where")]
        for one in characters:
            where = ", ".join(one["places"]) + (", ..." if one["n_clips"] > len(one["places"]) else "")
            rows.append((name_symbol(one["symbol"]), *cells((TIMES, CLIPS), one), where))
        if characters:
            tables.append((title, rows))
    return tables


def terminal(report: DataReport) -> str:
    """The report in lines, with the first findings of each kind."""
    lines = [report.headline]
    if len(report.lists) > 1:
        lines += text_table(_list_rows(report))
    lines += [f"  {name}: {n_clips}" for name, n_clips in report.formats.items()]
    lines += text_table(_distribution_rows(report))
    if len(report.speakers) > 1:
        lines += ["speakers", *_first(_speaker_rows(report), 1 + SHOWN_SPEAKERS)]
    for title, rows in _character_tables(report):
        lines += [title, *_first(rows, 1 + SHOWN)]
    lines += [f"note: {note}" for note in report.notes()]
    for kind, found in report.by_kind().items():
        lines.append(f"{KINDS[kind].level}: {KINDS[kind].title} ({len(found)}): {KINDS[kind].advice}")
        lines += _first([(finding.where, finding.wav, finding.reason) for finding in found], SHOWN)
    # Without characters that a terminal would obey.
    return "\n".join("".join(one if one.isprintable() else "\ufffd" for one in line) for line in lines)


def _first(rows: Rows, n_shown: int) -> list[str]:
    """The first rows in columns, and how many more there are."""
    more = len(rows) - n_shown
    return text_table(rows[:n_shown]) + [f"  ... and {more} more"] * (more > 0)
