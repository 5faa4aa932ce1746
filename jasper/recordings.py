"""The utterances that a recogniser learns from or writes down: what they say, how long they are, and their sound."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from common.audio.wav import check_wav
from common.errors import AudioError, InputError
from jasper.manifest import Entry, Recording, read_entries
from jasper.text import normalize_transcript
from jasper.waveform import load_recording


@dataclass(frozen=True)
class Selection:
    """Which utterances of a source count, and how they are read."""

    sampling_rate: int  # Hz, that every recording is brought to
    labels: tuple[str, ...]  # characters of a transcript
    trim_silence: bool = True
    normalize_transcripts: bool = True
    min_duration: float = 0.0  # s
    max_duration: float = math.inf  # s
    max_utterances: int = 0  # 0: all


class Recordings:
    """Utterances of manifests, lists, folders or files (`jasper.manifest.read_entries`), ready to be loaded.

    Where a manifest gives durations, recordings need only be there; all others are looked into at once. Utterances
    that are too short or too long are left out; ``note`` says how many.

    Raises:
        InputError: a source or a recording is missing or broken, or nothing is left.
    """

    def __init__(self, sources: Sequence[Path], *, folder: Path, selection: Selection) -> None:
        self._selection = selection
        found = [entry for source in sources for entry in read_entries(source, folder=folder)]
        timed = [(entry, _duration(entry)) for entry in found]
        shortest, longest = selection.min_duration, selection.max_duration
        kept = [(entry, seconds) for entry, seconds in timed if shortest <= seconds <= longest]
        named = ", ".join(map(str, sources))
        if not kept:
            raise InputError(
                f"{named}: none of {len(found)} utterances is from {shortest:g} to {longest:g} s long; "
                "see --max-duration"
            )
        if selection.max_utterances:
            kept = kept[: selection.max_utterances]
        self.entries = [entry for entry, _ in kept]
        self.durations = [seconds for _, seconds in kept]  # of the original recordings, s
        n_left = sum(not shortest <= seconds <= longest for _, seconds in timed)
        self.note = ""
        if n_left:
            self.note = (
                f"{named}: {n_left} of {len(found)} utterances are left out, as they are not from {shortest:g} to "
                f"{longest:g} s long"
            )

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def sampling_rate(self) -> int:
        """Hz, of what `load` gives."""
        return self._selection.sampling_rate

    def path(self, index: int) -> Path:
        """The original recording."""
        return self.entries[index].original.path

    def transcript(self, index: int) -> str | None:
        """What is said, normalised; None where the source does not say."""
        text = self.entries[index].transcript
        if text is None or not self._selection.normalize_transcripts:
            return text
        return normalize_transcript(text, self._selection.labels)

    def load(self, index: int, *, recording: Recording | None = None, trim: bool | None = None) -> Tensor:
        """The sound (T,) of an utterance: its original, or another ``recording`` of it.

        Raises:
            AudioError: it cannot be read; names the entry.
        """
        entry = self.entries[index]
        path = (recording or entry.original).path
        rate = check_wav(path, sampling_rate=None, where=entry.where).sampling_rate
        return load_recording(
            path,
            own_rate=rate,
            sampling_rate=self._selection.sampling_rate,
            trim=self._selection.trim_silence if trim is None else trim,
            where=entry.where,
        )


def _duration(entry: Entry) -> float:
    """Seconds of the original recording, from the manifest, or from the recording itself."""
    if entry.duration is not None:
        for recording in entry.recordings:
            if not recording.path.is_file():
                raise AudioError(
                    f"{recording.path}: no such file ({entry.where}); paths start from the folder of --dataset-path"
                )
        return entry.duration
    info = check_wav(entry.original.path, sampling_rate=None, where=entry.where)
    for recording in entry.recordings:
        if recording is not entry.original:
            check_wav(recording.path, sampling_rate=None, where=entry.where)
    return info.n_samples / info.sampling_rate
