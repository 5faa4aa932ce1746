"""Finds recordings and their transcripts in a folder, in the layouts that people have them in.

A transcript stands in a table (``metadata.csv`` and its relatives, Common Voice's TSV), in lines of JSON, in
LibriSpeech's ``*.trans.txt``, or in a file of its own, ``a.txt`` or ``a.lab``, beside ``a.wav`` or in a folder that
mirrors that of the recordings.
"""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from common.errors import InputError
from common.files import read_lines, read_text
from common.importing.options import TABLE
from common.importing.recordings import RecordingIndex, without_suffix

# Names of columns, and of fields of JSON; of several texts the first of these is taken that is not empty.
_CLIP = (
    *"path file file_name filename file_path audio_filepath audio_file audio_path audio wav wav_filename".split(),
    *"wav_path clip clip_id clip_name utterance utterance_id id name".split(),
)
_TEXT = (
    *"normalized_text text_normalized normalized_transcription normalized_transcript normalized".split(),
    *"text sentence transcript transcription raw_text".split(),
)
_CLIP_NAMES, _TEXT_NAMES = {*_CLIP}, {*_TEXT}
_SPEAKER = ("speaker", "speaker_name", "speaker_id", "client_id", "spk")
_NOT_READ = ("invalidated.tsv", "other.tsv", "reported.tsv", TABLE)  # Common Voice's are not validated
_TIME_MARKS = re.compile(r"(\s*(\d+[.,]\d+\s+\d+[.,]\d+|\d+\s+\d{4,})(\s.*)?(\n|$))+")  # labels: Audacity's, HTK's
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


class Transcript(NamedTuple):
    """The text of a recording."""

    clip: str  # the recording, relative to the source; before it is found, its name, with or without folder and suffix
    text: str
    speaker: str | None  # as the transcript says
    where: str  # "metadata.csv:7", relative to the source


def match_transcripts(source: Path, files: Sequence[PurePosixPath]) -> tuple[list[Transcript], dict[str, str]]:
    """The transcript of each recording among ``files`` (relative to ``source``), and why others are left out.

    The latter by recording, or by the place of a transcript without one. Where several kinds of places give the text
    of a recording, tables come first, then JSON, then files of its own. Raises InputError where there are no
    recordings, or no transcripts.
    """
    index = RecordingIndex(files)
    if not index.recordings:
        raise InputError(f"{source}: no recordings (.wav, .flac, .mp3, .ogg, .opus, .m4a, .aac, ...)")
    matched: dict[str, Transcript] = {}
    left: dict[str, str] = {}
    for kind in (_read_tables, _read_json, _read_own_files):
        found: dict[str, Transcript] = {}
        for one in kind(source, files, index):
            recording, problem = index.find(one.clip, near=PurePosixPath(one.where).parent)
            if recording is None:
                left[one.where] = problem
            elif str(recording) not in matched:
                one = one._replace(clip=str(recording), text=" ".join(one.text.split()))
                first = found.setdefault(one.clip, one)
                if first.text != one.text:
                    index.explain(recording, f"two transcripts that differ ({first.where} and {one.where})")
        matched |= {name: one for name, one in found.items() if PurePosixPath(name) not in index.reasons}
    if not matched and not left and not index.reasons:
        looked_for = "metadata.csv or another table, JSON lines, *.trans.txt, or a.txt or a.lab beside a.wav"
        raise InputError(f"{source}: no transcripts found; looked for {looked_for}")
    without = (one for one in index.recordings if str(one) not in matched)
    left |= {str(one): index.reasons.get(one, "no transcript") for one in without}
    return [matched[name] for name in sorted(matched)], left


def _read_tables(source: Path, files: Iterable[PurePosixPath], index: RecordingIndex) -> Iterator[Transcript]:
    """Transcripts of tables: a clip and its text separated by |, tab, comma or semicolon, with a heading or not."""
    tables = [one for one in files if one.suffix.lower() in (".csv", ".tsv", ".txt")]
    validated = {
        one.parent for one in tables if one.name == "validated.tsv"
    }  # Common Voice's other lists are its parts
    for path in tables:
        if path.name in _NOT_READ or (path.parent in validated and path.name != "validated.tsv"):
            continue
        if path.suffix.lower() == ".txt" and (index.find(str(path.with_suffix("")))[0] or not _is_list(source / path)):
            continue
        separator, rows = _read_rows(source / path)
        heading = [name.strip().lower().replace(" ", "_") for name in rows[0][1]] if rows else []
        if _CLIP_NAMES.isdisjoint(heading):
            absent = ["clip", "text"] if path.name == "metadata.csv" else []  # then each of its clips is listed
            heading = _guess_heading([row for _, row in rows], index, separator=separator) or absent
        elif not _TEXT_NAMES.isdisjoint(heading):
            rows = rows[1:]
        else:
            heading = []  # of another table
        for number, row in rows if heading else ():
            fields, where = dict(zip(heading, row)), f"{path}:{number}"
            if separator in ",;" and any(row[len(heading) :]):  # a text with commas, without quotes
                if heading[-1] not in _TEXT:
                    recording, _ = index.find(_transcript(fields, where).clip, near=path.parent)
                    index.explain(recording, f"{len(row)} fields, expected {len(heading)}: quote the text ({where})")
                    continue
                fields[heading[-1]] = separator.join(row[len(heading) - 1 :])
            yield _transcript(fields, where)


def _transcript(fields: Mapping[str, Any], where: str) -> Transcript:
    """The transcript that the fields of a row say, by their names; its clip is empty where they name none."""
    clip, text, speaker = (
        next((str(fields[name]).strip() for name in known if fields.get(name)), "")
        for known in (_CLIP, _TEXT, _SPEAKER)
    )
    return Transcript(clip, text, speaker or None, where)


def _is_list(path: Path) -> bool:
    """Whether a .txt is a list of clips and texts, ``wavs/a.wav|text``, in place of a text."""
    with path.open("rb") as file:
        first = file.readline(4096)
    return b"|" in first or b"\t" in first or path.name.endswith(".trans.txt")


def _read_rows(path: Path) -> tuple[str, list[tuple[int, list[str]]]]:
    """What separates the fields of a table, by its first line, and the rows with the numbers of their last lines.

    Quotes mean something where commas or semicolons separate, and around a whole field between tabs.
    """
    lines = read_lines(path)
    if path.name.endswith(".trans.txt"):  # LibriSpeech's: 84-121123-0001 TEXT
        return " ", [(number, line.split(maxsplit=1)) for number, line in enumerate(lines, 1) if line.strip()]
    first = next((line for line in lines if line.strip()), "")
    separator = next((one for one in "|\t;," if one in first), ",")
    if separator in ",;":
        has_spaces = any(f'{separator} "' in line for line in lines)
        reader = csv.reader((line + "\n" for line in lines), delimiter=separator, skipinitialspace=has_spaces)
        return separator, [(reader.line_num, row) for row in reader if any(row)]
    rows = []
    for number, line in enumerate(lines, 1):
        fields = [field.strip() for field in line.split(separator)]
        if separator == "\t":
            fields = [found[1].replace('""', '"') if (found := _QUOTED.fullmatch(one)) else one for one in fields]
        rows.append((number, fields))
    return separator, [row for row in rows if any(row[1])]


def _guess_heading(rows: Sequence[Sequence[str]], index: RecordingIndex, *, separator: str) -> list[str]:
    """Clip and text, and a third column of normalized texts or of speakers; none for a table without recordings."""
    known = [row for row in rows[:100] if len(row) > 1 and row[0] and index.find(row[0])[0]]
    has_long_texts = any(" " in row[1].strip() for row in known)
    if not any(letter.isalpha() for row in known for letter in row[1]):  # such as lengths
        return []
    third = {row[2] for row in rows if len(row) > 2 and row[2]}
    few = has_long_texts or len(third) <= len(rows) / 2
    folders = {part for row in rows for part in PurePosixPath(row[0]).parts[:-1]}
    if third and not any(" " in one for one in third) and (few or third <= folders):
        return ["clip", "text", "speaker"]
    if separator in ",;":  # of a text without quotes
        return ["clip", "text"]
    return ["clip", "text", "normalized_text"]


def _read_json(source: Path, files: Iterable[PurePosixPath], index: RecordingIndex) -> Iterator[Transcript]:
    """Transcripts of lines of JSON, or of a list: ``{"audio_filepath": "a.wav", "text": "..."}``."""
    for path in (one for one in files if one.suffix.lower() in (".json", ".jsonl", ".ndjson")):
        text = read_text(source / path)
        try:
            whole = json.loads(text)
            items = list(enumerate(whole if isinstance(whole, list) else [whole], 1))
        except json.JSONDecodeError:
            items = [(number, _parsed(line)) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        items = [(number, item if isinstance(item, dict) else {}) for number, item in items]
        if any(item.keys() & _CLIP_NAMES and item.keys() & _TEXT_NAMES for _, item in items):  # no file of settings
            yield from (_transcript(item, f"{path}:{number}") for number, item in items)


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None


def _read_own_files(source: Path, files: Sequence[PurePosixPath], index: RecordingIndex) -> Iterator[Transcript]:
    """Files of one transcript each: ``a.normalized.txt``, ``a.txt``, ``a.lab``, the first of these that there is."""
    texts = [one for one in files if one.suffix.lower() in (".txt", ".lab")]
    best: dict[PurePosixPath, PurePosixPath] = {}  # path without suffixes -> file
    for path in sorted(texts, key=lambda one: (not one.name.endswith(".normalized.txt"), one.suffix.lower() == ".lab")):
        if not path.name.endswith((".trans.txt", ".original.txt")):
            clip = path.with_suffix("")
            clip = clip.with_suffix("") if clip.suffix == ".normalized" else without_suffix(clip)  # of a.wav.txt
            best.setdefault(clip, path)
    recordings = {clip: index.find(str(clip))[0] for clip in best}
    folders = {clip.parent for clip, recording in recordings.items() if recording}
    for clip, path in sorted(best.items()):
        if recordings[clip] is None:
            if clip.parent in folders and not _is_list(source / path):
                yield Transcript(str(clip), "", None, str(path))
            continue
        try:
            text = read_text(source / path)
        except InputError as error:  # other bytes than UTF-8
            index.explain(recordings[clip], str(error))
            continue
        if _TIME_MARKS.fullmatch(text):
            index.explain(recordings[clip], f"{path} holds time marks, no transcript")
        else:
            yield Transcript(str(clip), text, None, str(path))
