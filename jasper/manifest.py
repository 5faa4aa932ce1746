"""Lists of recordings for a recognizer: LibriSpeech's JSON manifests, plain lists, folders, or one file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from common.audio.wav import SOUND_FORMATS
from common.data.filelist import read_filelist
from common.errors import AudioError, InputError, shown
from common.files import check_file, read_text
from common.progress import print_line
from common.text.languages import guess_language, rewritten_letter
from jasper.text import normalize_transcript, spelled
from jasper.waveform import duration_of
from jasper.yaml_config import DatasetSettings

RECORDINGS = (*SOUND_FORMATS, ".aac", ".mp4", ".webm")  # suffixes


@dataclass(frozen=True)
class _Recording:
    fname: str
    speed: float = 1.0


@dataclass(frozen=True)
class _Utterance:
    """An entry of a manifest; other keys are ignored."""

    files: Annotated[tuple[_Recording, ...], Field(min_length=1)]
    transcript: str | None = None
    original_duration: float | None = None

    def entry(self, folder: Path, manifest: Path, where: str) -> "Entry":
        files = sorted(self.files, key=lambda one: one.speed != 1)  # the original first, then the others in order
        return Entry(tuple(folder / one.fname for one in files), self.transcript, where, self.original_duration or 0.0)


@dataclass(frozen=True)
class _NemoUtterance:
    audio_filepath: str
    duration: float | None = None
    text: str | None = None
    offset: float | None = None  # s

    def entry(self, folder: Path, manifest: Path, where: str) -> "Entry":
        if self.offset:
            raise InputError(f"{where}: offset {self.offset:g} s, expected complete recordings; cut them first")
        own = manifest.parent / self.audio_filepath
        path = own if own.is_file() else folder / self.audio_filepath
        return Entry((path,), self.text, where, self.duration or 0.0)


@dataclass(frozen=True)
class Entry:
    """An utterance: a recording and its copies at other speeds."""

    paths: tuple[Path, ...]  # the original, then its copies
    transcript: str | None  # None: the source has none
    where: str  # "train.json: entry 7" or "list.txt:7", for messages
    duration: float = 0.0  # s, of the original; 0: not in the source

    @property
    def name(self) -> str:
        """The utterance's name in messages, ``wavs/a.wav (list.txt:7)``."""
        return f"{self.paths[0]} ({self.where})"

    def normalized(self, settings: DatasetSettings, labels: tuple[str, ...]) -> str | None:
        """Return the transcript in the labels' characters, normalized if the settings say so; None if there is none."""
        write = normalize_transcript if settings.normalize_transcripts else spelled
        return None if self.transcript is None else write(self.transcript, labels)


def select_entries(sources: Sequence[Path], *, folder: Path, settings: DatasetSettings) -> list[Entry]:
    """Read the utterances of ``sources`` whose durations are within the limits; a note counts the others."""
    found = [_with_duration(entry) for source in sources for entry in read_entries(source, folder=folder)]
    shortest, longest = settings.min_duration, settings.max_duration
    kept = [entry for entry in found if shortest <= entry.duration <= longest]
    named, limits = ", ".join(map(str, sources)), f"from {shortest:g} to {longest:g} s long"
    if not kept:
        raise InputError(f"{named}: none of {len(found)} utterances is {limits}; see --max-duration")
    if n_left := len(found) - len(kept):
        print_line(f"note: {named}: {n_left} of {len(found)} utterances are skipped, because they aren't {limits}")
    return kept[: settings.max_utts or None]


def check_english(entries: Sequence[Entry]) -> None:
    """Refuse transcripts in another language if the English normalization would change their letters."""
    texts = {entry.where: entry.transcript or "" for entry in entries}
    if guess_language(texts.values()) != "en" and (rewritten := rewritten_letter(texts)) is not None:
        where, word, letter = rewritten
        problem = f"{shown(word)} has {letter!r}, which the English normalization would rewrite"
        advice = "add the language's letters to labels, or set normalize_transcripts: false, in --model-config"
        raise InputError(f"{where}: {problem}; {advice}")


def _with_duration(entry: Entry) -> Entry:
    """Add the original's duration, unless the manifest states it."""
    for path in entry.paths:
        check_file(path, where=entry.where, error=AudioError)
    return entry if entry.duration else replace(entry, duration=duration_of(entry.paths[0], where=entry.where))


def read_entries(source: Path, *, folder: Path = Path()) -> list[Entry]:
    """Read the utterances of ``source``, with paths relative to ``folder``; raises InputError.

    - A JSON manifest, as written by scripts/preprocess_librispeech.sh, or NeMo's, with one object per line.
    - A list with ``wavs/a.wav|transcript`` on each line, or without transcripts.
    - A folder in LJSpeech's layout (``metadata.csv`` and ``wavs/``), or any folder of recordings; or one recording.
    """
    if source.is_dir():
        return _read_folder(source)
    if source.suffix.lower() in RECORDINGS:
        check_file(source, kind="recording")
        return [Entry((source,), None, "the only recording")]
    if source.suffix.lower() in (".json", ".jsonl"):
        return _read_manifest(source, folder)
    optional = ("text", "speaker")
    lines = read_filelist(source, columns=("wav",), optional=optional, may_be_empty=("text",), anywhere=True)
    return [Entry((folder / line.fields["wav"],), line.fields.get("text"), line.where) for line in lines]


def _read_folder(folder: Path) -> list[Entry]:
    metadata = folder / "metadata.csv"
    if metadata.is_file():
        lines = read_filelist(metadata, columns=("wav", "text"))
        return [Entry((folder / line.fields["wav"],), line.fields["text"], line.where) for line in lines]
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in RECORDINGS and path.is_file())
    if not paths:
        raise InputError(f"{folder}: holds no recordings, expected {', '.join(RECORDINGS)} or metadata.csv and wavs/")
    return [Entry((path,), None, f"recording {number} of {folder}") for number, path in enumerate(paths, 1)]


def _read_manifest(path: Path, folder: Path) -> list[Entry]:
    text = read_text(path)
    kind: Any = _Utterance
    if text.lstrip().startswith("{"):  # one object per line
        kind, text = _NemoUtterance, f"[{','.join(line for line in text.splitlines() if line.strip())}]"
    try:
        items = TypeAdapter(list[kind]).validate_json(text)
    except ValidationError as error:
        found = error.errors(include_url=False)[0]
        place = [f"entry {int(number) + 1}" for number in found["loc"][:1]] + [str(key) for key in found["loc"][1:]]
        raise InputError(": ".join([str(path), *place, found["msg"]])) from error
    if not items:
        raise InputError(f"{path}: holds no utterances")
    return [item.entry(folder, path, f"{path}: entry {number}") for number, item in enumerate(items, 1)]
