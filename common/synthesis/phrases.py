"""Lists of phrases to speak: with a header of columns, as `name.wav|utterance`, or plain lines of text."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from common.errors import InputError

COLUMNS = ("output", "text", "mel", "wav", "pitch", "duration", "speaker")
SOURCES = ("text", "mel", "wav")  # what sound can be made of; a header names at least one of them


@dataclass(frozen=True)
class Phrase:
    """One line of a list; paths of features are as written, relative to the dataset's folder."""

    where: str  # "phrases/devset10.tsv:3", for messages
    output: PurePosixPath  # of the wav, inside the output folder
    text: str | None = None
    mel: str | None = None
    wav: str | None = None  # a recording, to speak its own mel again
    pitch: str | None = None
    duration: str | None = None
    speaker: str | None = None  # a number, or a name that the checkpoint knows


def read_phrases(path: Path, *, optional: Collection[str] = ()) -> list[Phrase]:
    """Read a list of phrases in any of its three forms.

    - The first line names columns out of ``COLUMNS`` (``text``, ``mel`` or ``wav`` among them), separated by tabs or
      by ``|``; the other lines give their values.
    - ``output.wav|utterance`` on every line.
    - One utterance a line. These, and a list without the column ``output``, are named ``audio_0001.wav`` and so
      on by their place in the list.

    Empty lines are skipped. A line may leave a column of ``optional`` empty.

    Raises:
        InputError: the file is missing or not UTF-8, a line does not fit the form, a value is empty, an output
            would lie outside its folder, or two lines have the same output.
    """
    lines = _read_lines(path)
    first = lines[0][1]
    delimiter = "\t" if "\t" in first else "|"
    columns = [name.strip() for name in first.split(delimiter)]
    if not set(SOURCES).isdisjoint(columns):
        _check_columns(columns, where=f"{path}:{lines[0][0]}")
        rows, wanted = lines[1:], f"{len(columns)} columns ({', '.join(columns)})"
    elif "|" in first:
        columns, rows, delimiter, wanted = ["output", "text"], lines, "|", "<output wav file name>|<utterance>"
    elif path.suffix == ".tsv":
        raise InputError(f"{path}:{lines[0][0]}: expected a header with the column text, mel or wav, got {first!r}")
    else:
        columns, rows, delimiter, wanted = ["text"], lines, "|", "one utterance without |, as on the first line"
    if not rows:
        raise InputError(f"{path}: a header and no phrases")
    phrases = []
    for place, (number, line) in enumerate(rows, 1):
        where = f"{path}:{number}"
        values = [value.strip() for value in line.split(delimiter)]
        if len(values) != len(columns):
            raise InputError(f"{where}: {len(values)} columns, expected {wanted}")
        phrases.append(_phrase(dict(zip(columns, values)), place=place, where=where, optional=optional))
    _check_unique(phrases)
    return phrases


def _read_lines(path: Path) -> list[tuple[int, str]]:
    """The lines that are not empty, with their numbers; leading tabs matter, as they separate empty columns."""
    if not path.is_file():
        raise InputError(f"{path}: no such list of phrases")
    try:
        content = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start}); convert it to UTF-8") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    lines = [(number, line.rstrip("\r")) for number, line in enumerate(content.split("\n"), 1) if line.strip()]
    if not lines:
        raise InputError(f"{path}: holds no phrases")
    return lines


def _check_columns(columns: list[str], *, where: str) -> None:
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
    """The wav's path below the output folder; ``.wav`` is added to a name without it."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or name.endswith("/") or not path.name or "\0" in name:
        raise InputError(f"{where}: output {name!r}: expected a file name inside the output folder")
    return path if path.suffix.lower() == ".wav" else path.with_name(path.name + ".wav")


def _check_unique(phrases: list[Phrase]) -> None:
    seen: dict[PurePosixPath, Phrase] = {}
    for phrase in phrases:
        # Without its suffix: the mel and the plot of "a.wav" and "a.WAV" would be the same file.
        key = phrase.output.with_suffix("")
        if key in seen:
            raise InputError(f"{phrase.where}: output {phrase.output} is that of {seen[key].where} too")
        seen[key] = phrase
