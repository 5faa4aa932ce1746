"""An evaluation as one HTML page: averages, a table, and for each utterance players, transcripts and a plot."""

import base64
import difflib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import soundfile

from common.errors import InputError
from common.evaluation.results import (
    GRIFFIN_LIM,
    PAGE,
    Extent,
    Result,
    averages,
    averages_beside,
    columns_with_values,
    figures_of,
    files_of,
)
from common.files import write_text
from common.pages import Cell, Link, Number, Row, render_page
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

    def row(first: Cell, values: dict[str, float | None]) -> Row:
        found = ((column.shown(values[column.key]), values[column.key]) for column in columns)
        return first, *(Number(text, value=value) for text, value in found)

    rows = []
    for one in results:
        rows.append(row(Link(one.name, anchors[one.name]), figures_of(one)))
        rows += [row(Link(f"{one.name}, {its.name}", anchors[one.name]), figures_of(its)) for its in one.beside]
    means = averages(results)
    html = render_page(
        "evaluation/page.html",
        linked=linked,
        title=title,
        headline=_headline(extent),
        results=results,
        columns=columns,
        means=means,
        anchors=anchors,
        rows=rows,
        foot=[
            row(str(extent), means),
            *(row(f"{extent}, {name}", its) for name, its in averages_beside(results).items()),
        ],
        media={one.name: _addresses(one, folder=folder, embed=not linked) for one in results},
        players=("recorded", GRIFFIN_LIM, "synthesized"),
        compared=compared,
        settings=[(name.replace("_", " "), _plain(value)) for name, value in facts.items()],
    )
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


def _addresses(result: Result, *, folder: Path, embed: bool) -> dict[str, str | None]:
    """The addresses of an utterance's sounds and plot, None where there is no such file."""
    own = set(result.files(folder))
    files = files_of(folder, result.name).items()
    return {kind: _address(path, folder=folder, embed=embed) if path in own else None for kind, path in files}


def _address(path: Path, *, folder: Path, embed: bool) -> str | None:
    """A data URL of a sound or picture, or the path from the page to its file; None where there is no such file."""
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


def compared(text: str | None, reference: str | None) -> list[tuple[str, bool]] | None:
    """A transcript in pieces, and whether each differs from the reference, if there is one; None without a text."""
    if text is None or reference is None:
        return None if text is None else [(text, False)] * bool(text)
    words = text.split()
    matcher = difflib.SequenceMatcher(None, reference.split(), words, autojunk=False)
    pieces = [(" ".join(words[start:end]), kind != "equal") for kind, _, _, start, end in matcher.get_opcodes()]
    return [piece for piece in pieces if piece[0]]
