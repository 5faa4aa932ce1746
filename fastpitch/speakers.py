"""Speakers of a list: their names in order of their ids, and the id of each line."""

from collections.abc import Sequence

from common.data.filelist import FilelistEntry
from common.errors import InputError

_LONGEST_LIST = 12  # names shown in an error


def speaker_names(
    entries: Sequence[FilelistEntry], n_speakers: int | None, *, known: Sequence[str] = ()
) -> tuple[str, ...]:
    """Names of the speakers in a training list, in order of their ids; empty where lines have no speaker or a number.

    ``n_speakers`` None takes the column as it is: each different value is a speaker's name, numbers among them. With
    a number, a column of numbers gives the ids themselves, and 1 leaves the column unread. ``known`` names, those
    of a voice to go on from, come first, whether the list has them or not.

    Raises:
        InputError: there are more names than ``n_speakers``.
    """
    values = {entry.fields["speaker"] for entry in entries if "speaker" in entry.fields}
    if n_speakers == 1 and not known:
        return ()
    if n_speakers is not None and not known and all(value.isdecimal() for value in values):
        return ()
    new = sorted(
        values - set(known), key=lambda value: (not value.isdecimal(), int(value) if value.isdecimal() else 0, value)
    )
    names = (*known, *new)
    if n_speakers is not None and len(names) > n_speakers:
        raise InputError(
            f"{entries[0].where.rpartition(':')[0]}: {len(names)} speakers ({shown(names)}), but --n-speakers "
            f"{n_speakers}; leave the option out"
        )
    return names


def speaker_id(entry: FilelistEntry, *, names: Sequence[str], n_speakers: int, columns: Sequence[str]) -> int | None:
    """The speaker's id in a line; None for a model of one voice.

    Raises:
        InputError: several speakers and none in the line, or one that the model does not have.
    """
    value = entry.fields.get("speaker")
    if n_speakers == 1 and (not names or value is None):
        return None
    if value is None:
        raise InputError(f"{entry.where}: no speaker column; expected {'|'.join(columns)}|speaker for several speakers")
    if value in names:
        return names.index(value) if n_speakers > 1 else None
    if names:
        raise InputError(f"{entry.where}: speaker {value!r}, expected one of {shown(names)}")
    if not value.isdecimal() or int(value) >= n_speakers:
        raise InputError(f"{entry.where}: speaker {value!r}, expected a number from 0 to {n_speakers - 1}")
    return int(value)


def shown(names: Sequence[str]) -> str:
    """Names for a message, all of them unless they are many."""
    rest = f" and {len(names) - _LONGEST_LIST} more" if len(names) > _LONGEST_LIST else ""
    return ", ".join(names[:_LONGEST_LIST]) + rest
