"""Training lists of FastPitch: their columns, and the speakers that they name."""

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
    """The lines of lists of the same columns, each with its speaker where there is such a column.

    Where durations are needed, a list of recordings is read as that of their features in the dataset's folder. Raises
    InputError where lists are malformed or differ, or are not for ``learned_alignment``, or features are missing.
    """
    entries: list[FilelistEntry] = []
    for path in paths_of(filelists):
        columns, fitting = columns_of(path), _LEARNED if learned_alignment else (WITH_DURATIONS, RECORDINGS)
        if columns not in fitting:
            wanted = " or ".join("|".join(kind) for kind in fitting)
            advice = "" if learned_alignment else "; without durations, add --learned-alignment"
            raise InputError(f"{path}: has the columns {'|'.join(columns)}, expected {wanted}{advice}")
        more = read_filelist(path, columns=columns, optional=("speaker",))
        if columns == RECORDINGS and not learned_alignment:
            more = [_with_features(entry, dataset_path) for entry in more]
        if entries and [*more[0].fields] != [*entries[0].fields]:
            kinds = ["|".join(entry.fields) for entry in (more[0], entries[0])]
            raise InputError(f"{more[0].where}: {kinds[0]}, but {entries[0].where} has {kinds[1]}; expected the same")
        entries += more
    return entries


def columns_of(filelist: Path) -> tuple[str, ...]:
    """The columns of a list but for that of speakers, by the first line."""
    fields = first_fields(filelist)[:3]
    n_features = sum(field.endswith(".pt") for field in fields)
    if not fields[0].endswith(".pt"):
        return RECORDINGS_WITH_PITCH if n_features else RECORDINGS
    return WITH_DURATIONS if n_features == 3 else FEATURES


def _with_features(entry: FilelistEntry, dataset_path: Path) -> FilelistEntry:
    """The features of a recording in place of it, and the phones of its TextGrid if its durations are theirs."""
    wav, words = entry.fields["wav"], {name: value for name, value in entry.fields.items() if name != "wav"}
    paths = {column: f"{folder}/{feature_name(wav)}.pt" for column, folder in FOLDERS.items()}
    if missing := [path for path in paths.values() if not (dataset_path / path).is_file()]:
        raise InputError(
            f"{entry.where}: {wav} has no {', '.join(missing)} in {dataset_path}; make them by extract_mels.py "
            "--extract-mels --extract-durations --extract-pitch-char, or add --learned-alignment"
        )
    durations = dataset_path / paths["durations"]
    if (phones := durations.with_suffix(".txt")).is_file() and not durations.with_name(TEACHER).is_file():
        words["text"] = read_text(phones)
    return FilelistEntry(paths | words, entry.where)


def with_labels(text: TextConfig, entries: Sequence[FilelistEntry], dataset_path: Path) -> TextConfig:
    """Add an aligner's labels beyond the symbol set, such as "tʃ", unless durations are of their letters."""
    if text.of_transcripts.g2p is not None:
        return text
    table = get_symbol_table(text.symbol_set, text.labels)
    phones = {entry.where: canonical_phone(entry.fields["text"]).split() for entry in entries}
    for entry in entries:
        if not all(phone in table for phone in phones[entry.where]):
            durations = load_tensor(dataset_path / entry.fields["durations"], where=entry.where)
            if len(durations) != len(phones[entry.where]):
                return text
            break
    new = {phone for words in phones.values() for phone in words if phone not in table}
    return replace(text, labels=(*text.labels, *sorted(new)))


def speaker_names(
    entries: Sequence[FilelistEntry], n_speakers: int | None, *, known: Sequence[str] = ()
) -> tuple[str, ...]:
    """Names of the speakers in a training list, in order of their ids; empty where lines have no speaker or a number.

    ``n_speakers`` None takes each different value as a name; with a number, numbers are ids, and 1 ignores the column.
    ``known`` names, of the voice to start from, come first. Raises InputError for more than ``n_speakers``.
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
    """The speaker's id in a line, None for a model of one voice; raises InputError where there is none."""
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
