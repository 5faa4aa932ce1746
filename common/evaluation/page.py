"""An evaluation as one HTML page: a table, and for each utterance players, transcripts and a plot."""

import base64
import difflib
import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

import soundfile

from common.errors import InputError
from common.evaluation.results import (
    PAGE,
    Column,
    EvaluationFolder,
    Result,
    averages,
    columns_with_values,
    writing,
)
from common.files import write_text

EMBEDDED_BYTES = 48 * 2**20  # larger pages refer to the files in their folder instead of holding them
BASE64_GROWTH = 4 / 3

_STYLE = """
body { font-family: sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { border-bottom: 1px solid #ccc; padding: 0.3em 0.7em; text-align: right; }
th:first-child, td:first-child { text-align: left; }
tfoot td { font-weight: bold; border-top: 2px solid #222; }
section { border-top: 2px solid #ccc; margin-top: 2em; }
figure { display: inline-block; margin: 0.5em 1.5em 0.5em 0; }
figcaption { color: #555; font-size: 0.9em; }
dt { color: #555; font-size: 0.9em; }
dd { margin: 0 0 0.4em 0; }
img { max-width: 100%; }
mark { background: #ffd2c2; }
.error { color: #b00020; }
"""


def save_page(folder: EvaluationFolder, results: Sequence[Result], *, title: str, facts: dict[str, str]) -> None:
    """Write the page, with sounds and plots in it, or links to their files where it would be too large.

    Raises:
        InputError: it cannot be written, or a file for it cannot be read.
    """
    # FLAC is smaller than the files that are counted here.
    size = sum(path.stat().st_size for result in results for path in folder.files(result) if path.is_file())
    media = _Media(folder, embed=BASE64_GROWTH * size <= EMBEDDED_BYTES)
    columns = columns_with_values(results)
    parts = [
        "<!DOCTYPE html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style></head>',
        f"<body><h1>{escape(title)}</h1>",
        _definitions({name: escape(value) for name, value in facts.items()}),
        _table(results, columns),
        *(_section(result, columns, media, number) for number, result in enumerate(results)),
        "</body></html>\n",
    ]
    with writing(path := folder.path / PAGE):
        write_text(path, "\n".join(parts))


class _Media:
    """Addresses of sounds and pictures: data URLs, or paths from the page to their files."""

    def __init__(self, folder: EvaluationFolder, *, embed: bool) -> None:
        self.folder = folder
        self._embed = embed

    def address(self, path: Path) -> str | None:
        """None where there is no such file."""
        if not path.is_file():
            return None
        if not self._embed:
            return quote(path.relative_to(self.folder.path).as_posix())
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


def _table(results: Sequence[Result], columns: Sequence[Column]) -> str:
    head = "".join(f"<th>{escape(column.title)} ({escape(column.unit)})</th>" for column in columns)
    rows = []
    for number, result in enumerate(results):
        name = f'<a href="#u{number}">{escape(result.name)}</a>'
        rows.append(_row(name, [column.shown(column.value(result)) for column in columns]))
    means = averages(results)
    foot = _row(f"all {len(results)}", [column.shown(means[column.key]) for column in columns])
    body = "\n".join(rows)
    return (
        f"<table><thead><tr><th>utterance</th>{head}</tr></thead>\n<tbody>{body}</tbody><tfoot>{foot}</tfoot></table>"
    )


def _row(first: str, cells: Sequence[str]) -> str:
    return f"<tr><td>{first}</td>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _section(result: Result, columns: Sequence[Column], media: _Media, number: int) -> str:
    folder = media.folder
    parts = [f'<section id="u{number}"><h2>{escape(result.name)}</h2>', f"<p>{escape(result.text)}</p>"]
    if result.error:
        parts.append(f'<p class="error">{escape(result.error)}</p>')
    if result.cut:
        parts.append('<p class="error">The voice did not end it, and was stopped.</p>')
    sounds = {"synthesized": folder.synthesized(result.name)}
    if result.recording is not None:
        sounds["recorded"] = folder.recorded(result.name)
    for caption, path in sounds.items():
        if address := media.address(path):
            player = f'<audio controls preload="none" src="{address}"></audio>'
            parts.append(f"<figure>{player}<figcaption>{caption}</figcaption></figure>")
    figures = {c.title: f"{c.shown(c.value(result))} {c.unit}" for c in columns if c.value(result) is not None}
    parts.append("<p>" + escape(", ".join(f"{name} {value}" for name, value in figures.items())) + "</p>")
    parts.append(_transcripts(result))
    if address := media.address(folder.plot(result.name)):
        parts.append(f'<img loading="lazy" alt="spectrograms and pitch of {escape(result.name)}" src="{address}">')
    return "\n".join([*parts, "</section>"])


def _transcripts(result: Result) -> str:
    """Reference and transcripts, with the words that differ marked."""
    lines = {"reference": None if result.reference is None else escape(result.reference)}
    lines["recognized"] = marked(result.heard, result.reference)
    lines["recognized in the recording"] = marked(result.heard_recording, result.reference)
    return _definitions({name: line or "(nothing)" for name, line in lines.items() if line is not None})


def marked(text: str | None, reference: str | None) -> str | None:
    """A transcript as HTML, with the words marked that differ from the reference."""
    if text is None or reference is None:
        return text and escape(text)
    words = text.split()
    matcher = difflib.SequenceMatcher(None, reference.split(), words, autojunk=False)
    pieces = []
    for kind, _, _, start, end in matcher.get_opcodes():
        piece = escape(" ".join(words[start:end]))
        if piece:
            pieces.append(piece if kind == "equal" else f"<mark>{piece}</mark>")
    return " ".join(pieces)
