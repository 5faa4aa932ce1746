"""FastPitch's training lists: their columns and speakers."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from common.data.features import feature_name
from common.data.filelist import SPEAKER_NUMBER, FilelistEntry, Filelists, first_fields, paths_of, read_filelist
from common.errors import InputError, shown
from common.files import read_text
from common.text.config import TextConfig
from common.text.symbols import canonical_phone, get_symbol_table
from common.text.teacher import TEACHER
from common.torch_file import load_tensor

WITH_DURATIONS = ("mel", "durations", "pitch", "text")
FEATURES = ("mel", "pitch", "text")  # pitch of each frame, Hz
RECORDINGS = ("wav", "text")
RECORDINGS_WITH_PITCH = ("wav", "pitch", "text")
_LEARNED = (RECORDINGS, RECORDINGS_WITH_PITCH, FEATURES)  # with a learned alignment
FOLDERS = {"mel": "mels", "durations": "durations", "pitch": "pitch_char"}  # where extract_mels.py writes a column


def read_list(dataset_path: Path, filelists: Filelists, *, learned_alignment: bool) -> list[FilelistEntry]:
    """The lines of lists with the same columns.

    If durations are needed, a list of recordings is read as that of their features in the dataset's folder. Raises
    InputError if lists are malformed or differ, don't suit ``learned_alignment``, or lack features.
    """
    entries: list[FilelistEntry] = []
    for path in paths_of(filelists):
        columns, fitting = columns_of(path), _LEARNED if learned_alignment else (WITH_DURATIONS, RECORDINGS)
        if columns not in fitting:
            wanted = " or ".join(map("|".join, fitting))
            wanted += "" if learned_alignment else "; without durations, add --learned-alignment"
            raise InputError(f"{path}: has the columns {'|'.join(columns)}, expected {wanted}")
        more = read_filelist(path, columns=columns, optional=("speaker",))
        if columns == RECORDINGS and not learned_alignment:
            more = [_with_features(entry, dataset_path) for entry in more]
        if entries and [*more[0].fields] != [*entries[0].fields]:
            found, wanted = ("|".join(entry.fields) for entry in (more[0], entries[0]))
            raise InputError(f"{more[0].where}: {found}, expected {wanted} as in {entries[0].where}")
        entries += more
    return entries


def columns_of(filelist: Path) -> tuple[str, ...]:
    """The columns of a list except the speaker's, by its first line."""
    fields = first_fields(filelist)[:3]
    n_features = sum(field.endswith(".pt") for field in fields)
    if not fields[0].endswith(".pt"):
        return RECORDINGS_WITH_PITCH if n_features else RECORDINGS
    return WITH_DURATIONS if n_features == 3 else FEATURES


def _with_features(entry: FilelistEntry, dataset_path: Path) -> FilelistEntry:
    """A recording's features in its place, and the phones of its TextGrid if the durations are theirs."""
    words = dict(entry.fields)
    wav = words.pop("wav")
    paths = {column: f"{folder}/{feature_name(wav)}.pt" for column, folder in FOLDERS.items()}
    if missing := [path for path in paths.values() if not (dataset_path / path).is_file()]:
        advice = "make them by extract_mels.py --extract-mels --extract-durations --extract-pitch-char"
        advice += ", or add --learned-alignment"
        raise InputError(f"{entry.where}: {wav} has no {', '.join(missing)} in {dataset_path}; {advice}")
    durations = dataset_path / paths["durations"]
    if (phones := durations.with_suffix(".txt")).is_file() and not durations.with_name(TEACHER).is_file():
        words["text"] = read_text(phones)
    return FilelistEntry(paths | words, entry.where)


def with_labels(text: TextConfig, entries: Sequence[FilelistEntry], dataset_path: Path) -> TextConfig:
    """Add an aligner's labels that the symbol set lacks, such as "tʃ", unless the durations are those of letters."""
    if text.of_transcripts.g2p is not None:
        return text
    table = get_symbol_table(text.symbol_set, text.labels)
    new: set[str] = set()
    for entry in entries:
        phones = canonical_phone(entry.fields["text"]).split()
        unknown = {phone for phone in phones if phone not in table}
        if unknown and not new:
            durations = load_tensor(dataset_path / entry.fields["durations"], where=entry.where)
            if len(durations) != len(phones):
                return text
        new |= unknown
    return replace(text, labels=(*text.labels, *sorted(new)))


def speaker_names(
    entries: Sequence[FilelistEntry], n_speakers: int | None, *, known: Sequence[str] = ()
) -> tuple[str, ...]:
    """Names of the speakers in a training list in order of their ids; empty if lines have none, or numbers as ids.

    With ``n_speakers``, numbers are ids, and 1 ignores the column. ``known`` names, of the initial voice, come first.
    Raises InputError for more than ``n_speakers``.
    """
    values = {entry.fields["speaker"] for entry in entries if "speaker" in entry.fields}
    if n_speakers is not None and not known and (n_speakers == 1 or all(map(SPEAKER_NUMBER.fullmatch, values))):
        return ()
    new = sorted(values - set(known), key=lambda one: (int(one) if SPEAKER_NUMBER.fullmatch(one) else math.inf, one))
    names = (*known, *new)
    if n_speakers is not None and len(names) > n_speakers:
        raise InputError(f"--n-speakers {n_speakers}: there are {len(names)} speakers {shown(names)}; leave it out")
    return names


def speaker_id(entry: FilelistEntry, *, names: Sequence[str], n_speakers: int) -> int | None:
    """The speaker's id in a line, None for a model of one voice; raises InputError if it is missing or unknown."""
    value = entry.fields.get("speaker")
    if n_speakers == 1 and (not names or value is None):
        return None
    if value is None:
        raise InputError(f"{entry.where}: no speaker column; expected {'|'.join(entry.fields)}|speaker")
    if value in names:
        return names.index(value) if n_speakers > 1 else None
    if names:
        raise InputError(f"{entry.where}: speaker {value!r}, expected one of {shown(names)}")
    if not SPEAKER_NUMBER.fullmatch(value) or int(value) >= n_speakers:
        raise InputError(f"{entry.where}: speaker {value!r}, expected a number from 0 to {n_speakers - 1}")
    return int(value)
