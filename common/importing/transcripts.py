"""Find recordings and their transcripts, in tables, JSON, LibriSpeech's and Kaldi's files, or a text next to each."""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from common.errors import InputError, OptionError, reason
from common.files import read_lines, read_text
from common.importing.columns import OTHER, guess_columns
from common.importing.options import SUFFIXES, TABLE
from common.importing.recordings import RecordingIndex, without_suffix
from common.importing.subtitles import SUBTITLES, read_subtitles

# Names of columns and JSON fields, in order of preference; empty values are skipped.
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
_NOT_READ = ("invalidated.tsv", "other.tsv", "reported.tsv", TABLE)  # Common Voice's haven't been validated
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_UNFIT = re.compile(r"[\0-\x08\x0e-\x1f\x7f\ud800-\udfff]")  # control characters and lone surrogates
_SEPARATORS = "|\t;,:"
_UNCLOSED = '"'  # marks a row with an unclosed quote
_TABLES = (".csv", ".tsv", ".txt", ".list", ".lst")
_OWN = (".normalized.txt", ".txt", ".lab", *SUBTITLES)  # suffixes of files with one transcript, best first


class Transcript(NamedTuple):
    """The text of a recording."""

    clip: str  # the recording, relative to the source; until it is found, its name with or without folder and suffix
    text: str
    speaker: str | None  # as in the transcript
    where: str  # "metadata.csv:7", relative to the source


@dataclass(frozen=True)
class _Source:
    """A folder of recordings and transcripts."""

    folder: Path
    files: Sequence[PurePosixPath]  # relative to it
    index: RecordingIndex
    columns: tuple[str, ...]  # of tables, if given
    guessed: dict[str, list[PurePosixPath]]  # columns, guessed from their content -> tables


_Reading = tuple[PurePosixPath, Callable[[PurePosixPath, _Source], Iterator[Transcript]]]  # a file and its reader


def match_transcripts(
    source: Path, files: Sequence[PurePosixPath], columns: str | None = None
) -> tuple[list[Transcript], dict[str, str]]:
    """Return transcripts of recordings in ``files`` (relative to ``source``), and why others are left out, by place.

    Tables take precedence over JSON, and JSON over single-text files. ``columns`` are those of tables; guessed ones are
    printed. Raises InputError without recordings or transcripts, OptionError for ``columns`` without path or text.
    """
    named = tuple(one.strip().lower() for one in columns.split(",")) if columns else ()
    if named and (_CLIP_NAMES.isdisjoint(named) or _TEXT_NAMES.isdisjoint(named)):
        raise OptionError(f"--columns {columns}: expected at least path and text, as in path,speaker,text")
    index = RecordingIndex(files)
    if not index.recordings:
        raise InputError(f"{source}: no recordings (.wav, .flac, .mp3, .ogg, .opus, .m4a, .aac, ...)")
    about = _Source(source, files, index, named, defaultdict(list))
    matched: dict[str, Transcript] = {}
    left: dict[str, str] = {}
    for kind in (_tables, _json_files, _own_files):
        found: dict[str, Transcript] = {}
        for one in _read_each(kind, about, left):
            recording, problem = index.find(one.clip, near=PurePosixPath(one.where).parent)
            if recording is None:
                left[one.where] = problem
            elif str(recording) not in matched:
                one = one._replace(clip=str(recording), text=" ".join(one.text.split()))
                first = found.setdefault(one.clip, one)
                if unfit := _UNFIT.search(one.text):
                    index.explain(recording, f"the transcript has the character {unfit[0]!a} ({one.where})")
                elif first.text != one.text:
                    index.explain(recording, f"two transcripts that differ ({first.where} and {one.where})")
        matched |= {name: one for name, one in found.items() if PurePosixPath(name) not in index.reasons}
    if not matched and not left and not index.reasons:
        looked_for = "metadata.csv or another table, JSON lines, *.trans.txt, or a.txt or a.lab next to a.wav"
        raise InputError(f"{source}: no transcripts found; looked for {looked_for}")
    for heading, (path, *others) in about.guessed.items():
        more = f" and {len(others)} more" if others else ""
        print(f"{path}{more}: read as {heading}; override with --columns")
    without = (one for one in index.recordings if str(one) not in matched)
    left |= {str(one): index.reasons.get(one, "no transcript") for one in without}
    return [matched[name] for name in sorted(matched)], left


def _read_each(
    kind: Callable[[_Source], Iterable[_Reading]], about: _Source, left: dict[str, str]
) -> Iterator[Transcript]:
    """Yield the transcripts of all files of a kind; add the reasons why files can't be read to ``left``."""
    for path, read in kind(about):
        try:
            yield from [*read(path, about)]
        except InputError as error:
            left[str(path)] = str(error).removeprefix(f"{about.folder}/")
        except (OSError, ValueError, csv.Error) as error:
            left[str(path)] = f"cannot be read ({reason(error)})"


def _tables(about: _Source) -> Iterator[_Reading]:
    """Yield Kaldi's tables, and tables with |, tab, comma, semicolon or colon, with or without headings."""
    # Common Voice's other lists are parts of validated.tsv
    validated = {one.parent for one in about.files if one.name == "validated.tsv"}
    for path in about.files:
        if path.name == "text" and path.with_name("wav.scp") in about.files:
            yield path, _read_kaldi
        elif path.suffix.lower() in _TABLES and path.name not in _NOT_READ:
            has_own = path.suffix.lower() == ".txt" and about.index.find(str(path.with_suffix("")))[0]
            if not has_own and (path.parent not in validated or path.name == "validated.tsv"):
                yield path, _read_table


def _read_table(path: PurePosixPath, about: _Source) -> Iterator[Transcript]:
    """Yield the transcripts of a table; rows with unclosed quotes are left out."""
    index = about.index
    if path.suffix.lower() == ".txt" and not _is_list(about.folder / path, index):
        return
    separator, rows = _read_rows(about.folder / path, index)
    heading = [name.strip().lower().replace(" ", "_") for name in rows[0][1]] if rows else []
    has_heading = not _CLIP_NAMES.isdisjoint(heading)
    if about.columns or not has_heading:
        found = about.columns or guess_columns([row for _, row in rows], index, separator=separator)
        if found and not about.columns and separator != " ":
            about.guessed["|".join(found)].append(path)
        rows = rows[1:] if has_heading else rows
        absent = ["path", "text"] if path.name == "metadata.csv" else []  # then each of its clips is reported
        heading = [*found] or absent
    elif not _TEXT_NAMES.isdisjoint(heading):
        rows = rows[1:]
    else:
        heading = []  # of some other table
    for number, row in rows if heading else ():
        fields, where = dict(zip(heading, row)), f"{path}:{number}"
        recording, _ = index.find(_transcript(fields, where).clip, near=path.parent)
        if row[-1:] == [_UNCLOSED]:
            index.explain(recording, f"a quote is not closed ({where})")
        elif separator in ",;" and any(row[len(heading) :]) and heading[-1] != OTHER:  # an unquoted text with commas
            if heading[-1] not in _TEXT:
                index.explain(recording, f"{len(row)} fields, expected {len(heading)}: quote the text ({where})")
                continue
            fields[heading[-1]] = separator.join(row[len(heading) - 1 :])
        yield _transcript(fields, where)


def _read_kaldi(path: PurePosixPath, about: _Source) -> Iterator[Transcript]:
    """Yield the transcripts in Kaldi's ``text``, with recordings from ``wav.scp`` and speakers from ``utt2spk``."""
    tables: dict[str, dict[str, str]] = {}
    for name in ("text", "wav.scp", "utt2spk", "segments"):
        lines = read_lines(about.folder / path.with_name(name)) if path.with_name(name) in about.files else []
        tables[name] = {words[0]: words[1].strip() for line in lines if len(words := line.split(maxsplit=1)) == 2}
    if tables["segments"]:
        raise InputError(f"{path}: Kaldi's segments are not supported; cut the recordings at them first")
    for utterance, text in tables["text"].items():
        place = tables["wav.scp"].get(utterance, utterance)
        if place.endswith("|"):  # a command, which is not run
            place = next((word for word in place.split() if PurePosixPath(word).suffix.lower() in SUFFIXES), "")
        yield Transcript(place, text, tables["utt2spk"].get(utterance), f"{path}:{utterance}")


def _transcript(fields: Mapping[str, Any], where: str) -> Transcript:
    """Make a transcript from the fields of a row, by their names; its clip is empty if they name none."""
    clip, text, speaker = (
        next((value for name in known if isinstance(value := fields.get(name), str) and value.strip()), "").strip()
        for known in (_CLIP, _TEXT, _SPEAKER)
    )
    clip, speaker = (value.encode(errors="replace").decode() for value in (clip, speaker))
    return Transcript(clip, text, speaker or None, where)


def _is_list(path: Path, index: RecordingIndex) -> bool:
    """Whether a .txt is a list of clips and texts, ``wavs/a.wav|text``, rather than one text."""
    with path.open("rb") as file:
        first = file.readline(4096)
    name, colon, _ = first.decode(errors="replace").removeprefix("\ufeff").partition(":")  # JSUT's
    return b"|" in first or b"\t" in first or path.name.endswith(".trans.txt") or (bool(colon) and index.knows(name))


def _read_rows(path: Path, index: RecordingIndex) -> tuple[str, list[tuple[int, list[str]]]]:
    """Return a table's separator, and its rows with the numbers of their last lines."""
    lines = read_lines(path)
    if path.name.endswith(".trans.txt"):  # LibriSpeech's: 84-121123-0001 TEXT
        return " ", [(number, line.split(maxsplit=1)) for number, line in enumerate(lines, 1) if line.strip()]
    first = [line for line in lines if line.strip()][:20]
    there = [one for one in _SEPARATORS[:-1] if first and one in first[0]] or [","]
    counts = {one: sum(any(map(index.knows, line.split(one))) for line in first) for one in _SEPARATORS}
    best = max(counts.values())
    separator = next((one for one in _SEPARATORS if best and counts[one] == best), there[0])
    if separator in ",;":
        return separator, [(number, row) for number, row in _quoted_rows(lines, separator, index) if any(row)]
    rows = []
    for number, line in enumerate(lines, 1):
        fields = [field.strip() for field in line.split(separator, maxsplit=1 if separator == ":" else -1)]
        if separator == "\t":
            fields = [found[1].replace('""', '"') if (found := _QUOTED.fullmatch(one)) else one for one in fields]
        rows.append((number, fields))
    return separator, [row for row in rows if any(row[1])]


def _quoted_rows(lines: Sequence[str], separator: str, index: RecordingIndex) -> Iterator[tuple[int, list[str]]]:
    """Yield rows of a table with quotes; a row whose quote isn't closed before the next recording gets `_UNCLOSED`."""
    has_spaces = any(f'{separator} "' in line for line in lines)
    opening = re.compile(f'(^|{separator}) *"')
    start = 0
    while start < len(lines):
        end, n_quotes = start + 1, lines[start].count('"') if opening.search(lines[start]) else 0
        while n_quotes % 2 and end < len(lines):
            if any(index.knows(cell.strip(' "')) for cell in lines[end].split(separator)):
                break
            n_quotes += lines[end].count('"')
            end += 1
        row = [*lines[start].split(separator), _UNCLOSED]
        if n_quotes % 2 == 0:
            with suppress(csv.Error):  # a field that is too long
                rows = (line + "\n" for line in lines[start:end])
                row = next(csv.reader(rows, delimiter=separator, skipinitialspace=has_spaces), [])
        yield start + 1 if row[-1:] == [_UNCLOSED] else end, row
        start = end


def _json_files(about: _Source) -> Iterator[_Reading]:
    return ((path, _read_json) for path in about.files if path.suffix.lower() in (".json", ".jsonl", ".ndjson"))


def _read_json(path: PurePosixPath, about: _Source) -> Iterator[Transcript]:
    """Yield the transcripts in JSON Lines or a JSON list: ``{"audio_filepath": "a.wav", "text": "..."}``."""
    text = read_text(about.folder / path)
    whole = _parse(text)
    items = list(enumerate(whole if isinstance(whole, list) else [whole], 1))
    if whole is None:
        items = [(number, _parse(line)) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not any(isinstance(item, dict) for _, item in items) and whole is None:
        raise InputError(f"{path}: neither JSON nor JSON Lines, or nested too deeply")
    items = [(number, item if isinstance(item, dict) else {}) for number, item in items]
    if any(item.keys() & _CLIP_NAMES and item.keys() & _TEXT_NAMES for _, item in items):  # not a file of settings
        yield from (_transcript(item, f"{path}:{number}") for number, item in items)


def _parse(text: str) -> Any:
    """Parse JSON, None if invalid; numbers stay text, since a speaker or a clip may be called 0."""
    with suppress(json.JSONDecodeError, RecursionError):
        return json.loads(text, parse_int=str, parse_float=str)
    return None


def _own_files(about: _Source) -> Iterator[_Reading]:
    """Yield files with a single transcript: for each clip, the one whose suffix comes first in ``_OWN``."""
    best: dict[PurePosixPath, PurePosixPath] = {}  # path without suffixes -> file
    for suffix in _OWN:
        for path in (one for one in about.files if one.name.lower().endswith(suffix)):
            if not path.name.endswith((".trans.txt", ".original.txt")):
                best.setdefault(_clip_of_text(path), path)
    folders = {clip.parent for clip in best if about.index.find(str(clip))[0]}
    for clip, path in sorted(best.items()):
        if clip.parent in folders:
            yield path, _read_own_file


def _clip_of_text(path: PurePosixPath) -> PurePosixPath:
    """Return ``a`` for ``a.txt``, ``a.normalized.txt`` and ``a.wav.txt``."""
    clip = path.with_suffix("")
    return clip.with_suffix("") if clip.suffix == ".normalized" else without_suffix(clip)


def _read_own_file(path: PurePosixPath, about: _Source) -> Iterator[Transcript]:
    """Yield a recording's transcript, or an empty one for a clip without a recording, so that it is reported."""
    clip, index = _clip_of_text(path), about.index
    recording = index.find(str(clip))[0]
    if recording is None:
        if not _is_list(about.folder / path, index):
            yield Transcript(str(clip), "", None, str(path))
        return
    read = read_subtitles if path.suffix.lower() in SUBTITLES else read_text
    try:
        text = read(about.folder / path)
    except InputError as error:  # invalid UTF-8, or times that can't be parsed
        index.explain(recording, str(error).removeprefix(f"{about.folder}/"))
    else:
        yield Transcript(str(clip), text, None, str(path))
