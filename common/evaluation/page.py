"""An evaluation as one HTML page: a table, and for each utterance players, transcripts and a plot."""

import base64
import difflib
import io
from collections.abc import Sequence
from functools import partial
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import quote

import soundfile

from common.errors import InputError
from common.evaluation.results import PAGE, Column, Result, averages, columns_with_values, figures_of, files_of, writing
from common.files import write_text

EMBEDDED_BYTES = 48 * 2**20  # larger pages refer to the files in their folder instead of holding them
TEMPLATE = Path(__file__).with_name("page.html")


def save_page(folder: Path, results: Sequence[Result], *, title: str, facts: dict[str, str]) -> None:
    """Write the page, with sounds and plots in it, or links to their files where it would be too large.

    Raises:
        InputError: it cannot be written, or a file for it cannot be read.
    """
    # Base64 makes them 4 / 3 as large; FLAC is smaller than the files that are counted here.
    size = sum(path.stat().st_size for result in results for path in result.files(folder) if path.is_file())
    address = partial(_address, folder=folder, embed=4 / 3 * size <= EMBEDDED_BYTES)
    columns = columns_with_values(results)
    names = [f'<a href="#u{number}">{escape(result.name)}</a>' for number, result in enumerate(results)]
    page = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        facts=_definitions({name: escape(value) for name, value in facts.items()}),
        titles="".join(f"<th>{escape(column.title)} ({escape(column.unit)})</th>" for column in columns),
        rows="\n".join(_row(name, figures_of(result), columns) for name, result in zip(names, results)),
        means=_row(f"all {len(results)}", averages(results), columns),
        sections="\n".join(
            _section(
                number, result, columns, {kind: address(path) for kind, path in files_of(folder, result.name).items()}
            )
            for number, result in enumerate(results)
        ),
    )
    with writing(path := folder / PAGE):
        write_text(path, page)


def _address(path: Path, *, folder: Path, embed: bool) -> str | None:
    """Of a sound or picture, a data URL or the path from the page to its file; None where there is no such file."""
    if not path.is_file():
        return None
    if not embed:
        return quote(path.relative_to(folder).as_posix())
    kind, content = ("image/png", path.read_bytes()) if path.suffix == ".png" else ("audio/flac", _flac(path))
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _flac(path: Path) -> bytes:
    try:
        samples, rate = soundfile.read(path, dtype="int16")
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path}: cannot be read; run the evaluation with --fresh") from error
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="FLAC", subtype="PCM_16")
    return file.getvalue()


def _definitions(entries: dict[str, str]) -> str:
    """A list of names and their contents, which are HTML."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{content}</dd>" for name, content in entries.items())
    return f"<dl>{rows}</dl>" if entries else ""


def _row(first: str, values: dict[str, float | None], columns: Sequence[Column]) -> str:
    cells = "".join(f"<td>{escape(column.shown(values[column.key]))}</td>" for column in columns)
    return f"<tr><td>{first}</td>{cells}</tr>"


def _section(number: int, result: Result, columns: Sequence[Column], addresses: dict[str, str | None]) -> str:
    parts = [f'<section id="u{number}"><h2>{escape(result.name)}</h2>', f"<p>{escape(result.text)}</p>"]
    errors = (result.error, "The voice did not end it, and was stopped." if result.cut else None)
    parts += [f'<p class="error">{escape(error)}</p>' for error in errors if error]
    for caption in ("synthesized", "recorded"):
        if addresses[caption] and (caption == "synthesized" or result.recording is not None):
            player = f'<audio controls preload="none" src="{addresses[caption]}"></audio>'
            parts.append(f"<figure>{player}<figcaption>{caption}</figcaption></figure>")
    values = [(column, column.value(result)) for column in columns]
    shown = [f"{column.title} {column.shown(value)} {column.unit}" for column, value in values if value is not None]
    parts.append(f"<p>{escape(', '.join(shown))}</p>")
    reference = result.reference
    texts = {
        "reference": None if reference is None else escape(reference),
        "recognized": marked(result.heard, reference),
        "recognized in the recording": marked(result.heard_recording, reference),
    }
    parts.append(_definitions({name: text or "(nothing)" for name, text in texts.items() if text is not None}))
    if plot := addresses["plot"]:
        parts.append(f'<img loading="lazy" alt="spectrograms and pitch of {escape(result.name)}" src="{plot}">')
    return "\n".join([*parts, "</section>"])


def marked(text: str | None, reference: str | None) -> str | None:
    """A transcript as HTML, with the words marked that differ from the reference."""
    if text is None or reference is None:
        return text and escape(text)
    words = text.split()
    matcher = difflib.SequenceMatcher(None, reference.split(), words, autojunk=False)
    pieces = [(kind, escape(" ".join(words[start:end]))) for kind, _, _, start, end in matcher.get_opcodes()]
    return " ".join(piece if kind == "equal" else f"<mark>{piece}</mark>" for kind, piece in pieces if piece)
