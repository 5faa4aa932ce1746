"""Filelists: one utterance per line, with fields separated by vertical bars. Errors name the file and line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from common.errors import InputError, shown
from common.files import read_text

WORD_COLUMNS = ("text", "speaker")  # every other column is a path, relative to the dataset's folder
SPEAKER_NUMBER = re.compile(r"[0-9]{1,9}")  # in a list or an option; anything else is a name
WORD = re.compile(r"[^\W\u3040-\u9fff]+|[\u3040-\u9fff]")  # Japanese and Chinese are counted by character
Filelists = Path | Sequence[Path]  # one list, or several to concatenate


@dataclass(frozen=True)
class FilelistEntry:
    """A line of a filelist."""

    fields: dict[str, str]  # column -> text; an optional column that the list lacks is absent
    where: str  # "list.txt:7"


class ListedDataset:
    """Base class of datasets whose utterances are the ``entries`` of lists, with files in ``folder``."""

    folder: Path
    entries: Sequence[FilelistEntry]

    def __len__(self) -> int:
        return len(self.entries)

    def name(self, index: int) -> str:
        """Return an utterance's name for messages, ``wavs/a.wav (train.txt:7)``."""
        entry = self.entries[index]
        return f"{next(iter(entry.fields.values()))} ({entry.where})"


def read_filelist(
    path: Path,
    *,
    columns: Sequence[str],
    optional: Sequence[str] = (),
    may_be_empty: Sequence[str] = (),
    anywhere: bool = False,
) -> list[FilelistEntry]:
    """Read ``columns``, then as many of ``optional`` as the list has, from each line of a UTF-8 file.

    Lists of recordings and texts may also contain lines ``clip|transcript[|normalized transcript]``, as in LJSpeech's
    metadata.csv. Empty lines are skipped. Every column except ``text`` and ``speaker`` is a path. It must be inside the
    dataset, since features get the same relative path in another folder, unless it may be ``anywhere``.

    Raises InputError, which names the line, if the list is missing or empty, can't be decoded, has a wrong number of
    columns, or has an empty field in a column that isn't in ``may_be_empty``.
    """
    wanted = "|".join(columns) + "".join(f"[|{name}]" for name in optional)
    entries: list[FilelistEntry] = []
    for number, line in read_numbered_lines(path, kind="filelist"):
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
            parts = PurePosixPath(value)
            if name not in WORD_COLUMNS and not anywhere and (parts.is_absolute() or ".." in parts.parts):
                raise InputError(f"{where}: {value} is outside the dataset; expected a path relative to its folder")
        entries.append(FilelistEntry(fields=fields, where=where))
    if not entries:
        raise InputError(f"{path}: the list is empty, expected lines of {wanted}")
    _check_speakers(entries, wanted)
    return entries


def _check_speakers(entries: Sequence[FilelistEntry], wanted: str) -> None:
    """Raise InputError if speakers look like sentences and texts like names, as in VITS's lists, which swap them."""
    pairs = [(one.fields["speaker"], one.fields["text"]) for one in entries if {*WORD_COLUMNS} <= {*one.fields}]
    speakers, texts = [name for name, text in pairs if text], [text for _, text in pairs if text]
    n_words = [sum(len(WORD.findall(value)) for value in values) for values in (speakers, texts)]
    if n_words[0] > max(2 * n_words[1], 3 * len(texts)) and len({*speakers}) >= len({*texts}):
        shown_fields = f"speaker {shown(speakers[0], longest=40)} and text {shown(texts[0], longest=40)}"
        raise InputError(f"{entries[0].where}: {shown_fields} seem to be swapped; expected {wanted}")


def read_numbered_lines(path: Path, *, kind: str) -> list[tuple[int, str]]:
    """Read non-empty lines with their numbers, from 1; raises the errors of `common.files.read_text`."""
    lines = read_text(path, kind=kind).split("\n")
    return [(number, line) for number, line in enumerate(lines, 1) if line.strip()]


def paths_of(filelists: Filelists) -> list[Path]:
    """Return the paths of one or several lists."""
    return [filelists] if isinstance(filelists, Path) else list(filelists)


def _of_metadata(values: list[str]) -> list[str]:
    """Convert metadata.csv's ``clip|transcript[|normalized transcript]`` to ``wavs/<clip>.wav|transcript``.

    Such a clip has no folder and no suffix; other fields are returned unchanged.
    """
    clip, *texts = values
    if not clip or "/" in clip or "." in clip or len(texts) not in (1, 2):
        return values
    return [f"wavs/{clip}.wav", texts[-1] or texts[0]]


def first_fields(path: Path) -> list[str]:
    """Return the fields of the first non-empty line, or one empty field."""
    lines = read_numbered_lines(path, kind="filelist")
    return [field.strip() for field in lines[0][1].split("|")] if lines else [""]
