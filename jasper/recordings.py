"""The utterances of manifests, lists and folders: which of them are used, their transcripts, and their samples."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from common.audio.wav import check_wav
from common.errors import AudioError, InputError
from common.progress import print_line
from jasper.config import DatasetSettings
from jasper.manifest import Entry, Recording, read_entries
from jasper.text import normalize_transcript
from jasper.waveform import load_recording


class JasperRecordings:
    """Utterances of manifests, lists, folders or files (`jasper.manifest.read_entries`), ready to be loaded.

    Where a manifest gives durations, recordings only have to exist; the headers of all others are read at once.
    Utterances that are too short or too long are left out, and a printed note says how many.

    Raises:
        InputError: a source or a recording is missing or broken, or nothing is left.
    """

    def __init__(
        self, sources: Sequence[Path], *, folder: Path, settings: DatasetSettings, labels: tuple[str, ...]
    ) -> None:
        self._settings = settings
        self._labels = labels
        found = [(entry, _duration(entry)) for source in sources for entry in read_entries(source, folder=folder)]
        shortest, longest = settings.min_duration, settings.max_duration
        kept = [(entry, seconds) for entry, seconds in found if shortest <= seconds <= longest]
        named = ", ".join(map(str, sources))
        if not kept:
            raise InputError(
                f"{named}: none of {len(found)} utterances is from {shortest:g} to {longest:g} s long; "
                "see --max-duration"
            )
        if n_left := len(found) - len(kept):
            print_line(
                f"note: {named}: {n_left} of {len(found)} utterances are left out, as they are not from {shortest:g} "
                f"to {longest:g} s long"
            )
        kept = kept[: settings.max_utts or None]
        self.entries = [entry for entry, _ in kept]
        self.durations = [seconds for _, seconds in kept]  # of the original recordings, s

    def __len__(self) -> int:
        return len(self.entries)

    def transcript(self, index: int) -> str | None:
        """The transcript, normalized if the settings say so; None where the source has none."""
        text = self.entries[index].transcript
        if text is None or not self._settings.normalize_transcripts:
            return text
        return normalize_transcript(text, self._labels)

    def load(self, index: int, *, recording: Recording | None = None, trim: bool | None = None) -> Tensor:
        """The samples (T,) of an utterance: of its original recording, or of another ``recording`` of it.

        Raises:
            AudioError: it cannot be read; names the entry.
        """
        entry = self.entries[index]
        return load_recording(
            (recording or entry.original).path,
            sampling_rate=self._settings.sample_rate,
            trim=self._settings.trim_silence if trim is None else trim,
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
    infos = {one: check_wav(one.path, sampling_rate=None, where=entry.where) for one in entry.recordings}
    info = infos[entry.original]
    return info.n_samples / info.sampling_rate
