"""An evaluation as one HTML page: averages, a table, and for each utterance players, transcripts and a plot."""

import base64
import difflib
import io
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import soundfile

from common.errors import InputError
from common.evaluation.results import (
    GRIFFIN_LIM,
    PAGE,
    Column,
    Extent,
    Result,
    averages,
    averages_beside,
    columns_with_values,
    figures_of,
    files_of,
)
from common.files import write_text
from common.pages import Cell, Link, Number, Row, Section, Term, glossary, render_cell, render_page, render_table
from common.pages.charts import data_url

EMBEDDED_BYTES = 48 * 2**20  # larger pages refer to the files in their folder instead of holding them


def save_page(folder: Path, results: Sequence[Result], *, extent: Extent, title: str, facts: dict[str, Any]) -> None:
    """Write the page, with sounds and plots in it, or links to their files where it would be too large.

    Raises:
        InputError: it cannot be written, or a file for it cannot be read.
    """
    # Base64 makes them 4 / 3 as large; FLAC is smaller than the files that are counted here.
    size = sum(path.stat().st_size for result in results for path in result.files(folder) if path.is_file())
    linked = 4 / 3 * size > EMBEDDED_BYTES
    columns = columns_with_values(results)
    anchors = {result.name: f"u{number}" for number, result in enumerate(results)}
    address = partial(_address, folder=folder, embed=not linked)
    articles = []
    for one in results:
        own = set(one.files(folder))
        addresses = {kind: address(path) for kind, path in files_of(folder, one.name).items() if path in own}
        articles.append(_article(anchors[one.name], one, columns, addresses))
    settings = [Row((name.replace("_", " "), _plain(value))) for name, value in facts.items()]
    sections = [
        Section("averages", "Averages", _averages(results, columns, anchors)),
        Section("table", "Utterances", _table(results, columns, anchors, extent)),
        Section("single", "Each utterance", "\n".join(articles)),
        Section("meaning", "What the figures mean", glossary([column.term for column in columns])),
        Section("settings", "Settings", render_table(("setting", "value"), settings, words=(1,))),
    ]
    html = render_page(kind="Evaluation", title=title, headline=_headline(extent), sections=sections, linked=linked)
    write_text(folder / PAGE, html)


def _headline(extent: Extent) -> str:
    if extent.stopped:
        return f"{extent.n_done} of {extent.n_listed} utterances: the evaluation was stopped; start it again to resume"
    return f"{extent.n_done} utterance{'s' if extent.n_done != 1 else ''}"


def _plain(value: Any) -> str:
    """A setting as text."""
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    if value is None or isinstance(value, bool):
        return {None: "default", True: "yes", False: "no"}[value]
    return str(value)


def _averages(results: Sequence[Result], columns: Sequence[Column], anchors: dict[str, str]) -> str:
    """Each figure's average with a link to the worst utterance, and links to those that failed."""
    means = averages(results)
    tiles = []
    for column in columns:
        worst = column.worst_of(results)
        link = (
            ""
            if worst is None
            else (f'<dd class="quiet">worst: {_link(worst, anchors)} {escape(column.shown(column.value(worst)))}</dd>')
        )
        name = render_cell(replace(column.term, unit=""))
        value = f'{escape(column.shown(means[column.key]))} <span class="unit">{escape(column.unit)}</span>'
        tiles.append(f'<div><dt>{name}</dt><dd class="value">{value}</dd>{link}</div>')
    failed = [_link(result, anchors) for result in results if result.error]
    cut = [_link(result, anchors) for result in results if result.cut]
    silent = [_link(result, anchors) for result in results if result.silent]
    lines = (
        ("Could not be evaluated completely", failed),
        ("Stopped as the voice did not end them", cut),
        ("Not spoken: the voice made hardly a frame of them", silent),
    )
    return f'<dl class="tiles">{"".join(tiles)}</dl>' + "".join(
        f'<p class="error">{words}: {", ".join(links)}</p>' for words, links in lines if links
    )


def _link(result: Result, anchors: dict[str, str]) -> str:
    return render_cell(Link(result.name, anchors[result.name]))


def _table(results: Sequence[Result], columns: Sequence[Column], anchors: dict[str, str], extent: Extent) -> str:
    """A row for each utterance and for what it is shown beside, averages below."""

    def row(first: Cell, values: dict[str, float | None]) -> Row:
        return Row((first, *(Number(column.shown(values[column.key]), values[column.key]) for column in columns)))

    rows = []
    for result in results:
        anchor = anchors[result.name]
        rows.append(row(Link(result.name, anchor), figures_of(result)))
        rows += [row(Link(f"{result.name}, {one.name}", anchor), figures_of(one)) for one in result.beside]
    foot = [row(str(extent), averages(results))]
    foot += [row(f"{extent}, {name}", means) for name, means in averages_beside(results).items()]
    headings: list[str | Term] = ["utterance", *(column.term for column in columns)]
    return render_table(headings, rows, foot=foot)


def _address(path: Path, *, folder: Path, embed: bool) -> str | None:
    """Of a sound or picture, a data URL or the path from the page to its file; None where there is no such file."""
    if not path.is_file():
        return None
    if not embed:
        return quote(path.relative_to(folder).as_posix())
    if path.suffix == ".svg":
        return data_url(path.read_text(encoding="utf-8"))
    return f"data:audio/flac;base64,{base64.b64encode(_flac(path)).decode('ascii')}"


def _flac(path: Path) -> bytes:
    try:
        samples, rate = soundfile.read(path, dtype="int16")
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path}: cannot be read; run the evaluation with --fresh") from error
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="FLAC", subtype="PCM_16")
    return file.getvalue()


def _article(anchor: str, result: Result, columns: Sequence[Column], addresses: dict[str, str | None]) -> str:
    name = escape(result.name)
    parts = [f'<article id="{anchor}"><h3>{name}<a class="up" href="#table">all utterances</a></h3>']
    parts.append(f"<p>{escape(result.text)}</p>")
    errors = (
        result.error,
        "The voice did not end it, and was stopped." if result.cut else None,
        "The voice did not speak it: it made hardly a frame." if result.silent else None,
    )
    parts += [f'<p class="error">{escape(error)}</p>' for error in errors if error]
    values = ((column, column.value(result)) for column in columns)
    parts.append(f'<dl class="facts">{"".join(_fact(*pair) for pair in values if pair[1] is not None)}</dl>')
    players = "".join(
        f'<figure><audio controls preload="none" src="{addresses[kind]}"></audio>'
        f"<figcaption>{kind}</figcaption></figure>"
        for kind in ("recorded", GRIFFIN_LIM, "synthesized")
        if addresses.get(kind)
    )
    parts.append(f'<div class="players">{players}</div>')
    texts = {
        "reference": None if result.reference is None else escape(result.reference),
        "recognized": marked(result.heard, result.reference),
    }
    texts |= {f"recognized, {one.name}": marked(one.heard, result.reference) for one in result.beside}
    rows = [f"<dt>{kind}</dt><dd>{text or '(nothing)'}</dd>" for kind, text in texts.items() if text is not None]
    parts += [f'<dl class="words-of">{"".join(rows)}</dl>'] if rows else []
    if plot := addresses.get("plot"):
        image = f'<img class="chart tall" loading="lazy" alt="spectrograms and pitch of {name}" src="{plot}">'
        parts.append(f'<div class="scroll" tabindex="0" role="region" aria-label="plot of {name}">{image}</div>')
    return "\n".join([*parts, "</article>"])


def _fact(column: Column, value: float | None) -> str:
    """A figure of one utterance, the unit behind its value."""
    name = render_cell(replace(column.term, unit=""))
    return f"<div><dt>{name}</dt><dd>{escape(column.shown(value))} {escape(column.unit)}</dd></div>"


def marked(text: str | None, reference: str | None) -> str | None:
    """A transcript as HTML, with the words marked that differ from the reference."""
    if text is None or reference is None:
        return text and escape(text)
    words = text.split()
    matcher = difflib.SequenceMatcher(None, reference.split(), words, autojunk=False)
    pieces = [(kind, escape(" ".join(words[start:end]))) for kind, _, _, start, end in matcher.get_opcodes()]
    return " ".join(piece if kind == "equal" else f"<mark>{piece}</mark>" for kind, piece in pieces if piece)
