"""Filelists: one utterance a line, fields between vertical bars, every problem named by file and line."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from common.errors import InputError

WORD_COLUMNS = ("text", "speaker")  # every other column is a path, relative to the dataset's folder
Filelists = Path | Sequence[Path]  # a list, or several that are read one after the other


@dataclass(frozen=True)
class FilelistEntry:
    """One line of a filelist."""

    fields: dict[str, str]  # column -> text; an optional column that the list lacks is absent
    where: str  # "list.txt:7"


def read_filelist(
    path: Path,
    *,
    columns: Sequence[str],
    optional: Sequence[str] = (),
    may_be_empty: Sequence[str] = (),
    anywhere: bool = False,
) -> list[FilelistEntry]:
    """Read ``columns``, then as many of ``optional`` as the list has, from each line of a UTF-8 file.

    A list of recordings and texts may also have the lines ``clip|transcript[|normalized transcript]`` of LJSpeech's
    metadata.csv. Empty lines are skipped.

    Every column but ``text`` and ``speaker`` is a path, which must stay inside the dataset (what is computed from it
    goes to the same place of another folder) unless it may be ``anywhere``. A missing or empty list, undecodable bytes,
    a wrong number of columns and an empty field (unless its column is in ``may_be_empty``) are InputErrors that name
    the line.
    """
    wanted = "|".join(columns) + "".join(f"[|{name}]" for name in optional)
    entries: list[FilelistEntry] = []
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        values = [value.strip() for value in line.split("|")]
        if columns[0] == "wav" and "text" in (*columns, *optional):
            values = _of_metadata(values)
        if not len(columns) <= len(values) <= len(columns) + len(optional):
            raise InputError(f"{where}: {len(values)} columns, expected {wanted}")
        if entries and len(values) != len(entries[0].fields):
            raise InputError(f"{where}: {len(values)} columns, but {entries[0].where} has {len(entries[0].fields)}")
        fields = dict(zip((*columns, *optional), values))
        for name, value in fields.items():
            if not value and name not in may_be_empty:
                raise InputError(f"{where}: the {name} column is empty; expected {wanted}")
            if name not in WORD_COLUMNS:
                check_path(value, where=where, anywhere=anywhere)
        entries.append(FilelistEntry(fields=fields, where=where))
    if not entries:
        raise InputError(f"{path}: the list is empty, expected lines of {wanted}")
    return entries


def paths_of(filelists: Filelists) -> list[Path]:
    """The files of one list or several."""
    return [filelists] if isinstance(filelists, Path) else list(filelists)


def _of_metadata(values: list[str]) -> list[str]:
    """Fields ``clip|transcript[|normalized transcript]`` of a metadata.csv as ``wavs/<clip>.wav|transcript``.

    Such a clip has neither a folder nor a suffix; the fields of other lines are returned as they are.
    """
    clip, *texts = values
    if not clip or "/" in clip or "." in clip or len(texts) not in (1, 2):
        return values
    return [f"wavs/{clip}.wav", texts[-1] or texts[0]]


def first_fields(path: Path) -> list[str]:
    """Fields of the first line that is not empty: peek at what a list holds.

    One empty field where the list is empty or cannot be read, which `read_filelist` explains.
    """
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            first = next((line for line in file if line.strip()), "")
    except OSError:
        return [""]
    return [field.strip() for field in first.split("|")]


def check_path(value: str, *, where: str, anywhere: bool) -> None:
    """Refuse what is no path, or, unless it may be ``anywhere``, one that leads out of the dataset's folder.

    Raises:
        InputError: it is; names ``where``.
    """
    if "\0" in value:
        raise InputError(f"{where}: {value!r} holds a zero byte, expected a path")
    parts = PurePosixPath(value)
    if not parts.name:
        raise InputError(f"{where}: {value!r} names no file, expected a path")
    if not anywhere and (parts.is_absolute() or ".." in parts.parts):
        raise InputError(f"{where}: {value} leads out of the dataset; expected a path relative to its folder")


def _lines(path: Path) -> list[str]:
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such filelist") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    texts = []
    for number, line in enumerate(lines, start=1):
        try:
            texts.append(line.decode("utf-8").rstrip("\r"))
        except UnicodeDecodeError as error:
            raise InputError(f"{path}:{number}: byte {error.start + 1} is not UTF-8; save the list as UTF-8") from error
    return texts
