"""Finds recordings and their transcripts in a folder, in the layouts that people have them in.

A transcript stands in a table (``metadata.csv`` and its relatives, Common Voice's TSV), in lines of JSON, in
LibriSpeech's ``*.trans.txt``, or in a file of its own, ``a.txt`` or ``a.lab``, beside ``a.wav`` or in a folder that
mirrors that of the recordings.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from common.errors import InputError
from common.files import read_lines, read_text
from common.importing.recordings import RecordingIndex, without_suffix

LOOKED_FOR = "metadata.csv or another table, JSON lines, *.trans.txt, or a.txt or a.lab beside a.wav"
# Names of columns that a heading may give, in lower case; of several texts the first of these is taken.
_CLIP_COLUMNS = (
    "path file file_name filename file_path audio_filepath audio_file audio_path audio wav wav_filename wav_path"
)
_CLIP_COLUMNS = (*_CLIP_COLUMNS.split(), "clip", "clip_id", "clip_name", "utterance", "utterance_id", "id", "name")
_TEXT_COLUMNS = (
    "normalized_text text_normalized normalized_transcription normalized_transcript normalized text sentence"
)
_TEXT_COLUMNS = (*_TEXT_COLUMNS.split(), "transcript", "transcription", "raw_text")
_SPEAKER_COLUMNS = ("speaker", "speaker_name", "speaker_id", "client_id", "spk")
_NOT_VALIDATED = ("invalidated.tsv", "other.tsv", "reported.tsv")  # of Common Voice
_TIME_MARKS = re.compile(r"(\s*\d+(\.\d+)?\s+\d+(\.\d+)?(\s+\S+)?\s*(\n|$))+")  # labels of HTK and Audacity
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


class Transcript(NamedTuple):
    """What one place says of one recording."""

    clip: str  # its name there, with or without folders and suffix
    text: str
    speaker: str | None
    where: str  # "metadata.csv:7", relative to the source


class Matched(NamedTuple):
    """A recording with its transcript."""

    recording: PurePosixPath  # relative to the source
    text: str
    speaker: str | None  # as the transcript says
    where: str


class Unmatched(NamedTuple):
    """A recording or a transcript that is left out."""

    name: str  # of the recording, or the place of the transcript
    reason: str


def match_transcripts(source: Path, files: Sequence[PurePosixPath]) -> tuple[list[Matched], list[Unmatched]]:
    """Each recording among ``files`` (relative to ``source``) with its transcript, and what is left over.

    Where several kinds of places give the text of a recording, tables come first, then JSON, then files of its own.
    Raises InputError where there are no recordings, or no transcripts.
    """
    index = RecordingIndex(files)
    if not index.recordings:
        raise InputError(f"{source}: no recordings (.wav, .flac, .mp3, .ogg, .opus, .m4a, .aac, ...)")
    matched: dict[PurePosixPath, Matched] = {}
    unmatched: list[Unmatched] = []
    for kind in (_of_tables, _of_json, _of_trans_files, _of_own_files):
        found: dict[PurePosixPath, Matched] = {}
        differing: dict[PurePosixPath, Matched] = {}
        for one in kind(source, files, index):
            recording, problem = index.find(one.clip, near=PurePosixPath(one.where).parent)
            if recording is None:
                unmatched.append(Unmatched(one.where, problem))
            elif recording not in matched:
                text = " ".join(one.text.split())
                first = found.setdefault(recording, Matched(recording, text, one.speaker, one.where))
                if first.text != text:
                    differing[recording] = Matched(recording, text, one.speaker, one.where)
        for recording, other in differing.items():
            first = found.pop(recording)
            index.explain(recording, f"two transcripts that differ ({first.where} and {other.where})")
        matched |= found
    if not matched and not unmatched:
        raise InputError(f"{source}: no transcripts found; looked for {LOOKED_FOR}")
    unmatched += [Unmatched(str(one), index.why_left(one)) for one in index.recordings if one not in matched]
    return [matched[recording] for recording in sorted(matched)], unmatched


def _of_tables(source: Path, files: Iterable[PurePosixPath], index: RecordingIndex) -> Iterator[Transcript]:
    """Transcripts of all tables: a clip and its text separated by |, tab, comma or semicolon, with a heading or not."""
    tables = [one for one in files if one.suffix.lower() in (".csv", ".tsv", ".psv", ".txt")]
    validated = {
        one.parent for one in tables if one.name == "validated.tsv"
    }  # the other lists of Common Voice are parts
    for path in tables:
        if path.parent in validated and path.suffix == ".tsv" and path.name != "validated.tsv":
            continue
        if path.name in _NOT_VALIDATED:
            continue
        if path.suffix == ".txt" and (index.find(str(path.with_suffix("")))[0] or not _is_list(source / path)):
            continue
        rows = [(number, row) for number, row in _read_rows(source / path) if any(row)]
        if not rows:
            continue
        columns = _columns_of(rows[0][1])
        if columns is not None:
            rows = rows[1:]
        elif (columns := _columns_without_heading([row for _, row in rows], index)) is None:
            continue
        for number, row in rows:
            if len(row) > max(columns.clip, columns.text) and row[columns.clip]:
                text = row[columns.text] or row[columns.raw]
                speaker = row[columns.speaker] if columns.speaker is not None and columns.speaker < len(row) else None
                yield Transcript(row[columns.clip], text, speaker or None, f"{path}:{number}")
            else:
                yield Transcript("", "", None, f"{path}:{number}")


class _Columns(NamedTuple):
    """Numbers of the columns of a table."""

    clip: int
    text: int
    raw: int  # taken where the text is empty
    speaker: int | None = None


def _is_list(path: Path) -> bool:
    """Whether a .txt is a list of clips and texts, ``wavs/a.wav|text``, in place of a text."""
    with path.open("rb") as file:
        return b"|" in file.readline(4096)


def _read_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows of a table with the numbers of their (last) lines; the first line decides what separates the fields.

    Quotes mean something where commas or semicolons separate, and around a whole field between tabs.
    """
    lines = read_lines(path)
    first = next((line for line in lines if line.strip()), "")
    separator = next((one for one in "|\t;," if one in first), ",")
    if separator in ",;":
        reader = csv.reader(io.StringIO("\n".join(lines)), delimiter=separator, skipinitialspace=True)
        yield from ((reader.line_num, [field.strip() for field in row]) for row in reader)
        return
    for number, line in enumerate(lines, 1):
        fields = [field.strip() for field in line.split(separator)]
        if separator == "\t":
            fields = [found[1].replace('""', '"') if (found := _QUOTED.fullmatch(one)) else one for one in fields]
        yield number, fields


def _columns_of(heading: Sequence[str]) -> _Columns | None:
    """The columns that a heading names; None for a row that is no heading."""
    names = [name.strip().lower().replace(" ", "_") for name in heading]
    clip, text, speaker = (
        next((names.index(name) for name in known if name in names), None)
        for known in (_CLIP_COLUMNS, _TEXT_COLUMNS, _SPEAKER_COLUMNS)
    )
    if clip is None or text is None:
        return None
    raw = next((names.index(name) for name in reversed(_TEXT_COLUMNS) if name in names), text)
    return _Columns(clip, text, raw, speaker)


def _columns_without_heading(rows: Sequence[Sequence[str]], index: RecordingIndex) -> _Columns | None:
    """``clip|text``, ``clip|text|normalized text`` or ``clip|text|speaker``; None for a table without recordings."""
    if not any(row[0] and index.find(row[0])[0] for row in rows[:100]) or max(map(len, rows)) < 2:
        return None
    third = {row[2] for row in rows if len(row) > 2 and row[2]}
    if not third:
        return _Columns(0, 1, 1)
    are_speakers = not any(" " in one for one in third) and (len(third) <= len(rows) / 2 or third <= _folders(rows))
    return _Columns(0, 1, 1, 2) if are_speakers else _Columns(0, 2, 1)


def _folders(rows: Sequence[Sequence[str]]) -> set[str]:
    return {part for row in rows for part in PurePosixPath(row[0]).parts[:-1]}


def _of_json(source: Path, files: Iterable[PurePosixPath], index: RecordingIndex) -> Iterator[Transcript]:
    """Transcripts of lines of JSON, or of a list: ``{"audio_filepath": "a.wav", "text": "..."}``."""
    for path in files:
        if path.suffix.lower() not in (".json", ".jsonl", ".ndjson"):
            continue
        text = read_text(source / path)
        lines = list(enumerate(text.split("\n"), 1))
        try:
            whole = json.loads(text)
        except json.JSONDecodeError:
            items = [(number, _parsed(line)) for number, line in lines if line.strip()]
        else:
            items = list(enumerate(whole if isinstance(whole, list) else [whole], 1))
        if not any(isinstance(item, dict) and _columns_of(list(item)) for _, item in items):
            continue  # a file of settings
        for number, item in items:
            names, where = list(item) if isinstance(item, dict) else [], f"{path}:{number}"
            columns = _columns_of(names)
            if columns is None:
                yield Transcript("", "", None, where)
                continue
            values = ["" if value is None else str(value) for value in item.values()]
            speaker = None if columns.speaker is None else values[columns.speaker] or None
            yield Transcript(values[columns.clip], values[columns.text], speaker, where)


def _parsed(line: str) -> object:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


def _of_trans_files(source: Path, files: Iterable[PurePosixPath], index: RecordingIndex) -> Iterator[Transcript]:
    """Lines ``84-121123-0001 TEXT`` of LibriSpeech's ``*.trans.txt``."""
    for path in (one for one in files if one.name.endswith(".trans.txt")):
        for number, line in enumerate(read_lines(source / path), 1):
            if line.strip():
                clip, _, text = line.strip().partition(" ")
                yield Transcript(clip, text, None, f"{path}:{number}")


def _of_own_files(source: Path, files: Sequence[PurePosixPath], index: RecordingIndex) -> Iterator[Transcript]:
    """Files of one transcript each: ``a.normalized.txt``, ``a.txt``, ``a.lab``, the first of these that there is."""
    texts = [one for one in files if one.suffix.lower() in (".txt", ".lab") and not one.name.endswith(".trans.txt")]
    best: dict[PurePosixPath, PurePosixPath] = {}  # path without suffixes -> file
    for path in sorted(texts, key=lambda one: (not one.name.endswith(".normalized.txt"), one.suffix.lower() == ".lab")):
        clip = path.with_suffix("")
        clip = clip.with_suffix("") if clip.suffix in (".normalized", ".original") else clip
        if not path.name.endswith(".original.txt"):
            best.setdefault(without_suffix(clip), path)  # without .wav of a.wav.txt
    found = {clip for clip in best if index.find(str(clip))[0]}
    folders = {clip.parent for clip in found}
    for clip, path in sorted(best.items()):
        if clip in found:
            try:
                text = read_text(source / path)
            except InputError as error:  # other bytes than UTF-8
                index.explain(index.find(str(clip))[0], str(error))
                continue
            if _TIME_MARKS.fullmatch(text):
                index.explain(index.find(str(clip))[0], f"{path} holds time marks, no transcript")
                continue
            yield Transcript(str(clip), text, None, str(path))
        elif clip.parent in folders and not _is_list(source / path):
            yield Transcript(str(clip), "", None, str(path))
