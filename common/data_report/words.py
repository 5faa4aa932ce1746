"""The report in words: rows that the page and the terminal both show, and the terminal's text."""

from dataclasses import astuple

from common.data_report.clip import measured
from common.data_report.findings import KINDS, REFUSED
from common.data_report.summary import FIGURES, DataReport
from common.pages import Number, Row, Term
from common.text import name_symbol

SHOWN = 10  # findings of a kind on the terminal; the page has them all
SHOWN_SPEAKERS = 20

Rows = list[Row]


def headline(report: DataReport) -> str:
    """The report in a line."""
    n_refused = len({finding.index for finding in report.findings if finding.level == REFUSED})
    found = f"{report.n_suspects} with findings, {n_refused} of them to be refused" if report.findings else "all clean"
    n_clips = f"{len(report.clips)} clip{'s' if len(report.clips) != 1 else ''}"
    return f"{n_clips}, {hours(report.seconds)} of speech: {found}"


def hours(seconds: float) -> str:
    """1 h 02 min, or 3 min 04 s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min {rest:02d} s"


def count(n: int) -> Number:
    """How many."""
    return Number(str(n), value=n)


def length(seconds: float) -> Number:
    """How long, sorted by seconds."""
    return Number(hours(seconds), value=seconds)


def shown(value: float | None, digits: int) -> Number:
    """A measurement; a hyphen where there is none."""
    return Number("-" if value is None else f"{value:.{digits}f}", value=value)


def distribution_rows(report: DataReport) -> Rows:
    """A heading and a row for each figure."""
    rows: Rows = [("figure", "minimum", "5 %", "median", "95 %", "maximum", "unit")]
    for name, values in report.distributions.items():
        figure = FIGURES[name]
        numbers = (shown(value, figure.digits) for value in astuple(values))
        rows.append((Term(name, figure.meaning), *numbers, figure.unit))
    return rows


def speaker_rows(report: DataReport) -> Rows:
    """A heading and a row for each speaker."""
    rate, level = Term("symbols/s", "median speaking rate"), Term("dBFS", "median speech level")
    mean, std = Term("mean", "mean pitch", "Hz"), Term("std", "standard deviation of pitch", "Hz")
    low, median = Term("pitch 5 %", "5th percentile of pitch", "Hz"), Term("median", "median pitch", "Hz")
    high = Term("95 %", "95th percentile of pitch", "Hz")
    rows: Rows = [("speaker", "clips", "length", rate, level, low, median, high, mean, std)]
    for speaker in report.speakers:
        pitch = (speaker.pitch_low, speaker.pitch_median, speaker.pitch_high, speaker.pitch_mean, speaker.pitch_std)
        figures = (shown(speaker.speaking_rate, 1), shown(speaker.level, 1), *(shown(value, 0) for value in pitch))
        rows.append((speaker.name or "all", count(speaker.n_clips), length(speaker.seconds), *figures))
    return rows


def list_rows(report: DataReport) -> Rows:
    """A heading and a row for each list."""
    rows: Rows = [("list", "clips", "length")]
    for index, path in enumerate(report.lists):
        clips = [clip for clip in report.clips if clip.utterance.list_index == index]
        rows.append((str(path), count(len(clips)), length(sum(sound.seconds for _, sound in measured(clips)))))
    return rows


def character_tables(report: DataReport) -> list[tuple[str, Rows]]:
    """Characters that the symbol set lacks, and those that the cleaners rewrite: titles and tables that have rows."""
    tables = []
    for title, characters in (
        (f"characters that {report.text.symbol_set} lacks", report.unknown),
        ("characters that the cleaners rewrite", report.rewritten),
    ):
        rows: Rows = [("character", "times", "clips", "where")]
        for item in characters:
            where = ", ".join(item.places) + (", ..." if item.n_clips > len(item.places) else "")
            rows.append((name_symbol(item.symbol), count(item.count), count(item.n_clips), where))
        if characters:
            tables.append((title, rows))
    return tables


def terminal(report: DataReport) -> str:
    """The report in lines, with the first findings of each kind."""
    lines = [headline(report)]
    if len(report.lists) > 1:
        lines += columns(list_rows(report))
    lines += [f"  {name}: {n_clips}" for name, n_clips in report.formats.items()]
    lines += columns(distribution_rows(report))
    if len(report.speakers) > 1:
        lines += ["speakers", *_first(speaker_rows(report), SHOWN_SPEAKERS)]
    for title, rows in character_tables(report):
        lines += [title, *_first(rows, SHOWN)]
    lines += [f"note: {note}" for note in report.notes]
    for kind, found in report.by_kind().items():
        lines.append(f"{KINDS[kind].level}: {KINDS[kind].title} ({len(found)}): {KINDS[kind].advice}")
        lines += columns([(finding.where, finding.wav, finding.reason) for finding in found[:SHOWN]], left=3)
        lines += [f"  ... and {len(found) - SHOWN} more"] * (len(found) > SHOWN)
    return "\n".join(_printable(line) for line in lines)


def _first(rows: Rows, n_shown: int) -> list[str]:
    """A heading and the first rows below it, in columns, and how many more there are."""
    more = len(rows) - 1 - n_shown
    return columns(rows[: 1 + n_shown]) + [f"  ... and {more} more"] * (more > 0)


def columns(rows: Rows, *, left: int = 1) -> list[str]:
    """Rows with their columns aligned, the first ``left`` of them and the last to the left, numbers to the right."""
    texts = [tuple(map(str, row)) for row in rows]
    widths = [max(map(len, column)) for column in list(zip(*texts))[:-1]]
    form = [f"{{:{'<' if column < left else '>'}{width}}}" for column, width in enumerate(widths)]
    return ["  " + "  ".join([*form, "{}"]).format(*row).rstrip() for row in texts]


def _printable(line: str) -> str:
    """Without characters that a terminal would obey."""
    return "".join(character if character.isprintable() else "\ufffd" for character in line)
