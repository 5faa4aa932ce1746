"""An evaluation as one HTML page: a table, and of each utterance players, transcripts and pictures."""

import base64
import difflib
import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

import soundfile

from common.errors import InputError
from common.evaluation.evaluator import Folder
from common.evaluation.results import Column, Result, averages, columns_with_values
from common.files import write_text

EMBEDDED_BYTES = 48 * 2**20  # pages that would be larger with everything in them refer to the files beside them
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


def save_page(folder: Folder, results: Sequence[Result], *, title: str, settings: dict[str, str]) -> None:
    """Write the page; sounds and pictures are inside it, or beside it where that would make it too large.

    Raises:
        InputError: it, or a file that belongs into it, cannot be written or read.
    """
    media = _Media(folder, embed=_size(folder, results) <= EMBEDDED_BYTES)
    columns = columns_with_values(results)
    parts = [
        "<!DOCTYPE html>",
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style></head>',
        f"<body><h1>{escape(title)}</h1>",
        _definitions({name: escape(value) for name, value in settings.items()}),
        _table(results, columns),
        *(_section(result, columns, media, number) for number, result in enumerate(results)),
        "</body></html>\n",
    ]
    try:
        write_text(folder.page, "\n".join(parts))
    except OSError as error:
        raise InputError(f"{folder.page}: cannot be written ({error.strerror})") from error


class _Media:
    """Addresses of sounds and pictures: the data themselves, or the way from the page to their files."""

    def __init__(self, folder: Folder, *, embed: bool) -> None:
        self.folder = folder
        self._embed = embed

    def sound(self, path: Path) -> str | None:
        """None where there is no such file."""
        if not path.is_file():
            return None
        return _data("audio/flac", _flac(path)) if self._embed else self._beside(path)

    def picture(self, path: Path) -> str | None:
        """None where there is no such file."""
        if not path.is_file():
            return None
        return _data("image/png", path.read_bytes()) if self._embed else self._beside(path)

    def _beside(self, path: Path) -> str:
        return quote(path.relative_to(self.folder.path).as_posix())


def _size(folder: Folder, results: Sequence[Result]) -> float:
    """About what the page would weigh with everything in it; FLAC is smaller than the files counted here."""
    paths = [path for result in results for path in _files(folder, result)]
    return BASE64_GROWTH * sum(path.stat().st_size for path in paths if path.is_file())


def _files(folder: Folder, result: Result) -> list[Path]:
    paths = [folder.synthesised(result.name), folder.plot(result.name)]
    return paths if result.recording is None else [*paths, folder.recorded(result.name)]


def _flac(path: Path) -> bytes:
    try:
        samples, rate = soundfile.read(path, dtype="int16")
    except soundfile.LibsndfileError as error:
        raise InputError(f"{path}: cannot be read again; run the evaluation with --fresh") from error
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="FLAC", subtype="PCM_16")
    return file.getvalue()


def _data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _definitions(entries: dict[str, str]) -> str:
    """A list of names and what is in them, as HTML already."""
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
    sounds = {"synthesised": folder.synthesised(result.name)}
    if result.recording is not None:
        sounds["recorded"] = folder.recorded(result.name)
    for caption, path in sounds.items():
        if address := media.sound(path):
            player = f'<audio controls preload="none" src="{address}"></audio>'
            parts.append(f"<figure>{player}<figcaption>{caption}</figcaption></figure>")
    figures = {c.title: f"{c.shown(c.value(result))} {c.unit}" for c in columns if c.value(result) is not None}
    parts.append("<p>" + escape(", ".join(f"{name} {value}" for name, value in figures.items())) + "</p>")
    parts.append(_transcripts(result))
    if address := media.picture(folder.plot(result.name)):
        parts.append(f'<img loading="lazy" alt="spectrograms and pitch of {escape(result.name)}" src="{address}">')
    return "\n".join([*parts, "</section>"])


def _transcripts(result: Result) -> str:
    """What was to be heard and what was, with the words that differ marked."""
    lines = {"to be heard": None if result.reference is None else escape(result.reference)}
    lines["heard"] = marked(result.heard, result.reference)
    lines["heard in the recording"] = marked(result.heard_recording, result.reference)
    return _definitions({name: line or "(nothing)" for name, line in lines.items() if line is not None})


def marked(heard: str | None, reference: str | None) -> str | None:
    """The heard words as HTML, those marked that stand in no order of the reference."""
    if heard is None or reference is None:
        return heard and escape(heard)
    words = heard.split()
    matcher = difflib.SequenceMatcher(None, reference.split(), words, autojunk=False)
    pieces = []
    for kind, _, _, start, end in matcher.get_opcodes():
        text = escape(" ".join(words[start:end]))
        if text:
            pieces.append(text if kind == "equal" else f"<mark>{text}</mark>")
    return " ".join(pieces)
