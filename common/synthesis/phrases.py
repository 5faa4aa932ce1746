"""Lists of phrases to speak: with a header of columns, as `name.wav|utterance`, or plain lines of text."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from common.audio import SOUND_FORMATS, SOUND_SUFFIXES
from common.audio.options import SETTINGS
from common.data import read_numbered_lines
from common.errors import InputError, shown

COLUMNS = ("output", "text", "mel", "wav", "pitch", "duration", "speaker")
SOURCES = ("text", "mel", "wav")  # what sound can be made of; a header names at least one of them


@dataclass(frozen=True)
class Phrase:
    """One line of a list; paths of features are as written, relative to the dataset's folder."""

    where: str  # "phrases/devset10.tsv:3", for messages
    output: PurePosixPath  # of the sound, inside the output folder; its suffix is one of `SOUND_FORMATS`
    text: str | None = None
    mel: str | None = None
    wav: str | None = None  # a recording, to speak its own mel again
    pitch: str | None = None
    duration: str | None = None
    speaker: str | None = None  # a number, or a name that the checkpoint knows

    def files(self, folder: Path) -> list[Path]:
        """What is read to speak it, from the dataset's ``folder``."""
        paths = [folder / path for path in (self.mel, self.wav, self.pitch, self.duration) if path is not None]
        return paths if self.mel is None else [*paths, paths[0].with_name(SETTINGS)]


@dataclass(frozen=True)
class _Form:
    """How the lines of a list are split into columns."""

    columns: tuple[str, ...]
    delimiter: str
    wanted: str  # for messages
    has_header: bool = False

    def split(self, line: str) -> list[str]:
        """A line's values; a bar within the text, which then is the last column, stays."""
        is_text_last = self.delimiter == "|" and self.columns[-1] == "text"
        return [value.strip() for value in line.split(self.delimiter, len(self.columns) - 1 if is_text_last else -1)]


_PLAIN = _Form(("text",), "|", "one utterance")
_NAMED = _Form(("output", "text"), "|", "<output file name>|<utterance>")
# LJSpeech's metadata.csv: the transcript as written, which is passed over, then with numbers in words
_METADATA = _Form(("output", "", "text"), "|", "LJSpeech's <clip>|<transcript>|<normalized transcript>")


def read_phrases(path: Path, *, optional: Collection[str] = ()) -> list[Phrase]:
    """Read a list of phrases in any of its forms.

    - The first line names columns out of ``COLUMNS`` (``text``, ``mel`` or ``wav`` among them), separated by tabs or
      by ``|``; the other lines give their values.
    - ``output.wav|utterance`` on every line, where the first line's name ends in a suffix of `SOUND_FORMATS`, or
      every line begins with one word and ``|``, without spaces. Three columns on every line, and no suffix, are those
      of LJSpeech's ``metadata.csv``, of which the last is spoken; a line on stdout says so.
    - One utterance a line. These, and a list without the column ``output``, are named ``audio_0001.wav`` and so
      on by their place in the list.

    Any other ``|`` is text. Empty lines are skipped. A line may leave a column of ``optional`` empty.

    Raises:
        InputError: the file is missing or not UTF-8, a line does not fit the form, a value is empty, an output
            would lie outside its folder or has another suffix, or two lines have the same output.
    """
    lines = _read_lines(path)
    form = _form(path, lines)
    rows = lines[1:] if form.has_header else lines
    if not rows:
        raise InputError(f"{path}: a header and no phrases")
    phrases = []
    seen: dict[PurePosixPath, Phrase] = {}
    for place, (number, line) in enumerate(rows, 1):
        where = f"{path}:{number}"
        values = form.split(line)
        if len(values) != len(form.columns):
            raise InputError(f"{where}: {len(values)} columns, expected {form.wanted}")
        named = {name: value for name, value in zip(form.columns, values) if name}
        phrases.append(_phrase(named, place=place, where=where, optional=optional))
        _check_unique(phrases[-1], seen)
    return phrases


def _form(path: Path, lines: list[tuple[int, str]]) -> _Form:
    """The form of a list with these numbered lines, as `read_phrases` describes it."""
    number, first = lines[0]
    delimiter = "\t" if "\t" in first else "|"
    columns = tuple(name.strip() for name in first.split(delimiter))
    if not set(SOURCES).isdisjoint(columns):
        _check_columns(columns, where=f"{path}:{number}")
        return _Form(columns, delimiter, f"{len(columns)} columns ({', '.join(columns)})", has_header=True)
    name, bar, _ = first.partition("|")
    if bar and PurePosixPath(name.strip()).suffix.lower() in SOUND_FORMATS:
        return _NAMED
    if all(re.match(r"[^\s|]+\|\S", line) for _, line in lines):
        has_suffix = any(PurePosixPath(line.partition("|")[0]).suffix for _, line in lines)
        if has_suffix or any(line.count("|") != 2 for _, line in lines):
            return _NAMED
        print(f"note: {path} is read as {_METADATA.wanted}; the normalized transcripts are spoken")
        return _METADATA
    if path.suffix == ".tsv":
        raise InputError(f"{path}:{number}: expected a header with the column text, mel or wav, got {first!r}")
    return _PLAIN


def _read_lines(path: Path) -> list[tuple[int, str]]:
    """The lines that are not empty, with their numbers; leading tabs matter, as they separate empty columns."""
    lines = read_numbered_lines(path, kind="list of phrases")
    if not lines:
        raise InputError(f"{path}: holds no phrases")
    return lines


def _check_columns(columns: tuple[str, ...], *, where: str) -> None:
    if unknown := [name for name in columns if name not in COLUMNS]:
        raise InputError(f"{where}: unknown column {unknown[0]!r}, expected some of {', '.join(COLUMNS)}")
    if twice := [name for name in COLUMNS if columns.count(name) > 1]:
        raise InputError(f"{where}: column {twice[0]} is given twice")
    if {"mel", "wav"} <= set(columns):
        raise InputError(f"{where}: columns mel and wav both give the mel-spectrogram; keep one of them")


def _phrase(values: dict[str, str], *, place: int, where: str, optional: Collection[str]) -> Phrase:
    values = {name: value for name, value in values.items() if value or name not in optional}
    if empty := [name for name, value in values.items() if not value]:
        raise InputError(f"{where}: empty {empty[0]}")
    output = _output_path(values.pop("output", f"audio_{place:04d}.wav"), where=where)
    return Phrase(where=where, output=output, **values)


def _output_path(name: str, *, where: str) -> PurePosixPath:
    """The sound's path below the output folder; ``.wav`` is added to a name without suffix."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or name.endswith("/") or not path.name:
        raise InputError(f"{where}: output {shown(name)}: expected a file name inside the output folder")
    if path.suffix and path.suffix.lower() not in SOUND_FORMATS:
        raise InputError(f"{where}: output {name!r}: expected a name that ends in {SOUND_SUFFIXES}, or has no suffix")
    return path if path.suffix else path.with_name(path.name + ".wav")


def _check_unique(phrase: Phrase, seen: dict[PurePosixPath, Phrase]) -> None:
    """Refuse a phrase with the output of one of those ``seen``, which it joins."""
    # Without its suffix: the mel and the plot of "a.wav" and "a.mp3" would be the same file.
    if (other := seen.setdefault(phrase.output.with_suffix(""), phrase)) is not phrase:
        raise InputError(
            f"{phrase.where}: output {phrase.output} is that of {other.where} too"
            if phrase.output == other.output
            else f"{phrase.where}: output {phrase.output} differs from {other.output} of {other.where} in "
            "its suffix alone; rename one of them"
        )
