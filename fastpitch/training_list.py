"""Training lists of FastPitch: their columns, and the speakers that they name."""

import math
from collections.abc import Sequence
from pathlib import Path

from common.cli import check_name
from common.data import FilelistEntry, Filelists, feature_name, first_fields, paths_of, read_filelist
from common.data.filelist import SPEAKER_NUMBER
from common.errors import InputError

WITH_DURATIONS = ("mel", "durations", "pitch", "text")
FEATURES = ("mel", "pitch", "text")  # pitch of each frame, Hz
RECORDINGS = ("wav", "text")
RECORDINGS_WITH_PITCH = ("wav", "pitch", "text")
FOLDERS = {"mel": "mels", "durations": "durations", "pitch": "pitch_char"}  # where extract_mels.py writes a column


def read_list(dataset_path: Path, filelists: Filelists, *, learned_alignment: bool) -> list[FilelistEntry]:
    """The lines of lists of the same columns, each with its speaker where there is such a column.

    Where durations are needed, a list of recordings is read as that of their features in the dataset's folder.

    Raises:
        InputError: a list is missing or malformed, has durations for ``learned_alignment`` or the reverse, lists a
            recording whose features are needed and missing, or has other columns than the list before it.
    """
    entries: list[FilelistEntry] = []
    for path in paths_of(filelists):
        columns = _columns(path, learned_alignment=learned_alignment)
        more = read_filelist(path, columns=columns, optional=("speaker",))
        if columns == RECORDINGS and not learned_alignment:
            more = [_with_features(entry, dataset_path) for entry in more]
        if entries and [*more[0].fields] != [*entries[0].fields]:
            kinds = ["|".join(entry.fields) for entry in (more[0], entries[0])]
            raise InputError(f"{more[0].where}: {kinds[0]}, but {entries[0].where} has {kinds[1]}; expected the same")
        entries += more
    return entries


def _columns(filelist: Path, *, learned_alignment: bool) -> tuple[str, ...]:
    """The columns of a list, by its first line."""
    first, *others = first_fields(filelist)
    n_features = sum(field.endswith(".pt") for field in (first, *others[:2]))
    kinds = ["|".join(kind) for kind in (RECORDINGS, RECORDINGS_WITH_PITCH, FEATURES)]
    expected = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
    if learned_alignment and n_features == 3:
        raise InputError(f"{filelist}: has a column of durations, which --learned-alignment finds; expected {expected}")
    if not learned_alignment and lists_recordings(filelist) and n_features > 0:
        raise InputError(
            f"{filelist}: lists {first} with pitch, expected {'|'.join(WITH_DURATIONS)}, as extract_mels.py "
            f"--output-meta-file writes it, or {kinds[0]}; without durations, add --learned-alignment"
        )
    if not learned_alignment:
        return RECORDINGS if lists_recordings(filelist) else WITH_DURATIONS
    if n_features == 0:
        return RECORDINGS
    return FEATURES if first.endswith(".pt") else RECORDINGS_WITH_PITCH


def _with_features(entry: FilelistEntry, dataset_path: Path) -> FilelistEntry:
    """The features of a recording in place of it; raises InputError where one is missing."""
    wav, words = entry.fields["wav"], {name: value for name, value in entry.fields.items() if name != "wav"}
    paths = {column: f"{folder}/{feature_name(wav)}.pt" for column, folder in FOLDERS.items()}
    if missing := [path for path in paths.values() if not (dataset_path / path).is_file()]:
        raise InputError(
            f"{entry.where}: {wav} has no {', '.join(missing)} in {dataset_path}; make them by extract_mels.py "
            "--extract-mels --extract-durations --extract-pitch-char, or add --learned-alignment"
        )
    return FilelistEntry(paths | words, entry.where)


def lists_recordings(filelist: Path) -> bool:
    """Whether a list names recordings first, and not their mels, by its first line."""
    first = first_fields(filelist)[0]
    return bool(first) and not first.endswith(".pt")


def has_durations(filelist: Path) -> bool:
    """Whether a list has the columns of `WITH_DURATIONS`, by its first line."""
    return sum(field.endswith(".pt") for field in first_fields(filelist)[:3]) == 3


def speaker_names(
    entries: Sequence[FilelistEntry], n_speakers: int | None, *, known: Sequence[str] = ()
) -> tuple[str, ...]:
    """Names of the speakers in a training list, in order of their ids; empty where lines have no speaker or a number.

    ``n_speakers`` None takes each different value of the column as a speaker's name, numbers among them. With a
    number, a column of numbers gives the ids themselves, and 1 ignores the column. ``known`` names, those of the
    voice to start from, come first, whether the list has them or not. Raises InputError for more than ``n_speakers``,
    or a name that no option and no list takes.
    """
    first = {entry.fields["speaker"]: entry.where for entry in reversed(entries) if "speaker" in entry.fields}
    for value, where in first.items() if n_speakers != 1 else ():
        check_name(f"{where}: speaker", value)
    values = set(first)
    if n_speakers is not None and not known and (n_speakers == 1 or all(map(SPEAKER_NUMBER.fullmatch, values))):
        return ()
    new = sorted(values - set(known), key=lambda one: (int(one) if SPEAKER_NUMBER.fullmatch(one) else math.inf, one))
    names = (*known, *new)
    if n_speakers is not None and len(names) > n_speakers:
        raise InputError(
            f"{entries[0].where.rpartition(':')[0]}: {len(names)} speakers ({shown(names)}), but --n-speakers "
            f"{n_speakers}; leave the option out"
        )
    return names


def speaker_id(entry: FilelistEntry, *, names: Sequence[str], n_speakers: int) -> int | None:
    """The speaker's id in a line; None for a model of one voice.

    Raises:
        InputError: several speakers and none in the line, or one that the model does not have.
    """
    value = entry.fields.get("speaker")
    if n_speakers == 1 and (not names or value is None):
        return None
    if value is None:
        wanted = "|".join((*entry.fields, "speaker"))
        raise InputError(f"{entry.where}: no speaker column; expected {wanted} for several speakers")
    if value in names:
        return names.index(value) if n_speakers > 1 else None
    if names:
        raise InputError(f"{entry.where}: speaker {value!r}, expected one of {shown(names)}")
    if not SPEAKER_NUMBER.fullmatch(value) or int(value) >= n_speakers:
        raise InputError(f"{entry.where}: speaker {value!r}, expected a number from 0 to {n_speakers - 1}")
    return int(value)


def shown(names: Sequence[str], *, most: int = 12) -> str:
    """Names for a message, all of them unless they are more than ``most``."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
