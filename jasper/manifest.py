"""Lists of recordings for a recognizer: LibriSpeech's JSON manifests, plain lists, folders, or one file."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.data.filelist import check_path, read_filelist
from common.errors import InputError
from common.files import read_json

RECORDINGS = (".wav", ".flac")
_WANTED = 'expected {"transcript": "...", "files": [{"fname": "...", "speed": 1}, ...]}'


@dataclass(frozen=True)
class Recording:
    """One file of an utterance."""

    path: Path
    speed: float = 1.0  # 1.1: an offline copy that is 1.1 times as fast


@dataclass(frozen=True)
class Entry:
    """One utterance: the same words in one recording or, with copies of other speeds, in several."""

    recordings: tuple[Recording, ...]
    transcript: str | None  # None: the source has none
    where: str  # "train.json: entry 7" or "list.txt:7", for messages
    duration: float | None = None  # s, of the original recording, where the source says so

    @property
    def name(self) -> str:
        """The utterance in messages, ``wavs/a.wav (list.txt:7)``."""
        return f"{self.recordings[0].path} ({self.where})"

    @property
    def original(self) -> Recording:
        """The recording of speed 1; the first one if there is none."""
        return next((one for one in self.recordings if one.speed == 1), self.recordings[0])


def read_entries(source: Path, *, folder: Path = Path()) -> list[Entry]:
    """The utterances of ``source``, whose relative paths start from ``folder``; absolute ones are taken as they are.

    - A JSON manifest, as scripts/preprocess_librispeech.sh writes them and as published: a list of objects with
      ``transcript``, ``files`` (``fname``, and ``speed`` of a copy) and ``original_duration``.
    - A list, ``wavs/a.wav|transcript`` on each line, or without transcripts.
    - A folder in LJSpeech's layout (``metadata.csv`` and ``wavs/``, of WAV or FLAC), or any folder of recordings,
      without transcripts.
    - One recording.

    Raises:
        InputError: it is missing, empty or broken; names the entry.
    """
    if source.is_dir():
        return _read_folder(source)
    if source.suffix.lower() in RECORDINGS:
        if not source.is_file():
            raise InputError(f"{source}: no such recording")
        return [Entry((Recording(source),), None, "the only recording")]
    if source.suffix.lower() == ".json":
        return _read_manifest(source, folder)
    optional = ("text", "speaker")
    entries = read_filelist(source, columns=("wav",), optional=optional, may_be_empty=("text",), anywhere=True)
    return [
        Entry((Recording(folder / entry.fields["wav"]),), entry.fields.get("text"), entry.where) for entry in entries
    ]


def _read_folder(folder: Path) -> list[Entry]:
    metadata = folder / "metadata.csv"
    if metadata.is_file():
        rows = _metadata_rows(metadata)
        return [Entry((Recording(_clip(folder / "wavs", name)),), text, where) for name, text, where in rows]
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in RECORDINGS and path.is_file())
    if not paths:
        raise InputError(f"{folder}: holds no recordings, expected .wav or .flac files, or metadata.csv and wavs/")
    return [Entry((Recording(path),), None, f"recording {number} of {folder}") for number, path in enumerate(paths, 1)]


def _clip(folder: Path, name: str) -> Path:
    """The clip of that name; its wav file where there is none, for the error that names it."""
    return next(
        (path for suffix in RECORDINGS if (path := folder / f"{name}{suffix}").is_file()), folder / f"{name}.wav"
    )


def _metadata_rows(path: Path) -> Iterator[tuple[str, str, str]]:
    """Name, normalized transcript (else the transcript) and place of each clip; LJSpeech's columns are not quoted."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text ({error})") from error
    if not any(line.strip() for line in lines):
        raise InputError(f"{path}: the list is empty, expected lines of id|transcript|normalized transcript")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        name, *texts = (value.strip() for value in line.split("|"))
        text = next((value for value in reversed(texts[:2]) if value), "")
        if not name or not text or len(texts) > 2:
            raise InputError(f"{path}:{number}: expected id|transcript|normalized transcript, got {line.strip()!r}")
        yield name, text, f"{path}:{number}"


def _read_manifest(path: Path, folder: Path) -> list[Entry]:
    try:
        items = read_json(path)
    except RecursionError as error:
        raise InputError(f"{path}: nested too deeply; expected a list of utterances") from error
    if not isinstance(items, list) or not items:
        held = "an empty list" if items == [] else f"a {type(items).__name__}"
        raise InputError(f"{path}: holds {held}, expected a list of utterances")
    return [_entry(item, folder, where=f"{path}: entry {number}") for number, item in enumerate(items, 1)]


def _entry(item: Any, folder: Path, *, where: str) -> Entry:
    if not isinstance(item, dict):
        raise InputError(f"{where}: {_short(item)}, {_WANTED}")
    files, transcript = item.get("files"), item.get("transcript")
    if transcript is not None and not isinstance(transcript, str):
        raise InputError(f"{where}: its transcript is {_short(transcript)}, expected a string")
    if not isinstance(files, list) or not files:
        raise InputError(f"{where}: its files are {_short(files)}, {_WANTED}")
    return Entry(
        recordings=tuple(_recording(file, folder, where=where) for file in files),
        transcript=transcript,
        where=where,
        duration=_positive(item, "original_duration", where=where),
    )


def _recording(file: Any, folder: Path, *, where: str) -> Recording:
    name = file.get("fname") if isinstance(file, dict) else None
    if not isinstance(name, str) or not name:
        raise InputError(f"{where}: {_short(file)} among its files, {_WANTED}")
    check_path(name, where=where, anywhere=True)
    return Recording(folder / name, _positive(file, "speed", where=where) or 1.0)


def _positive(values: dict[str, Any], name: str, *, where: str) -> float | None:
    """A number above 0, or None where there is none."""
    value = values.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise InputError(f"{where}: {name} is {_short(value)}, expected a number above 0")
    return float(value)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}..."


def manifest_bytes(items: Sequence[dict[str, Any]]) -> bytes:
    """The file that `read_entries` reads as a manifest: one utterance a line."""
    lines = ",\n".join(json.dumps(item, ensure_ascii=False) for item in items)
    return f"[\n{lines}\n]\n".encode()
