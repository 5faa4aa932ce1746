"""The recordings of a folder, their speakers, and the names of their clips."""

import itertools
import os
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from unidecode import unidecode

from common.importing.options import SUFFIXES

_MICROPHONE = re.compile(r"_mic\d$")  # VCTK's clips have two; the first one is used


def files_below(source: Path) -> tuple[list[PurePosixPath], dict[str, str]]:
    """Return all files below a folder except hidden ones, relative to it, and why others can't be read."""
    names: list[PurePosixPath] = []
    errors: list[OSError] = []
    seen = {*source.resolve().parents}  # links may lead upwards or form cycles
    for folder, folders, files in os.walk(source, onerror=errors.append, followlinks=True):
        real, inner = Path(os.path.realpath(folder)), PurePosixPath(Path(folder).relative_to(source).as_posix())
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__MACOSX")))
        names += [inner / name for name in files if name[0] != "." and Path(folder, name).is_file()]
    bad = [f"{str(name)!a}" for name in names if not str(name).isprintable()]
    left = dict.fromkeys(bad, "the name has unprintable or non-UTF-8 characters; rename the file")
    left |= {f"{error.filename!a}": f"cannot be read ({error.strerror})" for error in errors}
    return sorted(name for name in names if str(name).isprintable()), left


def without_suffix(path: PurePosixPath) -> PurePosixPath:
    """Remove an audio suffix: ``anna/a.wav`` -> ``anna/a``; a name without one, such as ``No.5``, is unchanged."""
    return path.with_suffix("") if path.suffix.lower() in SUFFIXES else path


class RecordingIndex:
    """Finds recordings by name, with or without suffix and folders."""

    def __init__(self, files: Sequence[PurePosixPath]) -> None:
        found = [one for one in files if one.suffix.lower() in SUFFIXES]
        self.recordings = sorted(found, key=lambda one: (without_suffix(one), SUFFIXES.index(one.suffix.lower())))
        self._by_name: dict[str, list[PurePosixPath]] = defaultdict(list)
        self.reasons: dict[PurePosixPath, str] = {}  # why recordings are left out
        by_clip: dict[PurePosixPath, PurePosixPath] = {}
        for one in self.recordings:
            clip = _clip_of(one)
            if (used := by_clip.setdefault(clip, one)) is not one:
                self.reasons[one] = f"{used} has the same name and is used instead"
                continue
            for start in range(len(clip.parts)):
                self._by_name["/".join(clip.parts[start:])].append(one)

    def find(self, name: str, *, near: PurePosixPath | None = None) -> tuple[PurePosixPath | None, str]:
        """Return the recording of that name, the one ``near`` a folder if there are several, or None and the reason."""
        parts = _parts_of(name)
        for start in range(len(parts)):
            found = self._by_name.get("/".join(parts[start:]), [])
            if len(found) > 1:
                found = [one for one in found if near and near in one.parents and len(near.parts)] or found
            exact = [one for one in found if _clip_of(one).parts == tuple(parts)]
            if len(found) == 1 or exact:
                return (exact or found)[0], ""
            if found:
                return None, f"{len(found)} recordings are called {name}: {found[0]}, {found[1]}"
        return None, f"no recording called {name}" if parts else "names no recording, or has no text"

    def knows(self, name: str) -> bool:
        parts = _parts_of(name)
        return any("/".join(parts[start:]) in self._by_name for start in range(len(parts)))

    def explain(self, recording: PurePosixPath | None, reason: str) -> None:
        """Note why a recording is left out."""
        if recording is not None:
            self.reasons[recording] = reason


def _parts_of(name: str) -> list[str]:
    """Split the name of a recording in a transcript into folders and file name."""
    path = _clip_of(PurePosixPath(name.strip().replace("\\", "/")))
    return [part for part in path.parts if part not in (".", "..", "/")]


def _clip_of(path: PurePosixPath) -> PurePosixPath:
    """Return a path without suffix and microphone, with composed accents: macOS decomposes them in file names."""
    path = PurePosixPath(unicodedata.normalize("NFC", str(without_suffix(path))))
    return path.with_name(_MICROPHONE.sub("", path.name)) if path.name else path


def speakers_of(recordings: Sequence[PurePosixPath], said: Sequence[str | None], how: str) -> list[str | None]:
    """Return a safe name for each recording's speaker; None for all if there is only one.

    ``how`` is "folders", "none", or "auto": as the transcripts ``said``, else the folder that a file name starts with.
    """
    names = list(said)
    if how == "none":
        names = [None for _ in recordings]
    elif how == "folders":
        names = first_folders(recordings)
    elif not any(said):
        names = [_speaker_by_name(one) for one in recordings]
    names = [one and safe_name(re.sub("^([0-9a-f]{12})[0-9a-f]{20,}$", r"\1", one)) for one in names]
    return [one or "unknown" for one in names] if len(set(names)) > 1 else [None] * len(names)


def first_folders(recordings: Sequence[PurePosixPath]) -> list[str | None]:
    """Return each recording's first folder below those that all of them share, None if it has none."""
    depth = _common_depth(recordings)
    return [one.parts[depth] if len(one.parts) > depth + 1 else None for one in recordings]


def _speaker_by_name(recording: PurePosixPath) -> str | None:
    return next((part for part in recording.parts[:-1] if re.match(re.escape(part) + "[_-]", recording.name)), None)


def _common_depth(recordings: Sequence[PurePosixPath]) -> int:
    """Return how many leading folders all recordings share."""
    return len(PurePosixPath(os.path.commonpath([one.parent for one in recordings])).parts) if recordings else 0


def safe_name(text: str) -> str:
    """Make a file name from a text: transliterated letters, digits, and ``-_.``."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", unidecode(text)).strip("-.")[:80] or "x"


def without_number(name: str) -> str:
    """Return the clip name of the recording that a clip was cut from: ``talk_0001`` -> ``talk``."""
    return re.sub(r"_\d{4,}$", "", name)


def clip_names(recordings: Sequence[PurePosixPath], speakers: Sequence[str | None]) -> list[str]:
    """Return a unique clip name for each recording, ``speaker/name``, that no clip cut from another one can get."""
    depth = _common_depth(recordings)
    stems = [safe_name(_clip_of(one).name) for one in recordings]
    counts = Counter((speaker, stem.lower()) for speaker, stem in zip(speakers, stems))
    wanted: list[str] = []
    for recording, speaker, stem in zip(recordings, speakers, stems):
        if counts[speaker, stem.lower()] > 1:
            stem = "-".join(safe_name(part) for part in _clip_of(recording).parts[depth:])
        wanted.append(stem if speaker is None else f"{speaker}/{stem}")
    cut = {without_number(name.lower()) for name in wanted if name != without_number(name)}
    names: dict[str, str] = {}  # in lower case, since some file systems ignore case
    for name in wanted:
        numbered = (name if number == 1 else f"{name}-{number}" for number in itertools.count(1))
        name = next(one for one in numbered if one.lower() not in names and one.lower() not in cut)
        names[name.lower()] = name
    return list(names.values())
