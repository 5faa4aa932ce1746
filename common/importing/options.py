"""Options for importing recordings, and the import command for messages."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from common.config import AudioConfig
from common.options import option

# Suffixes of recordings, better formats first; how a file is decoded depends on its content.
SUFFIXES = tuple(
    ".wav .flac .aif .aiff .opus .ogg .oga .m4a .mp4 .mov .mkv .3gp .amr .caf .aac .mp3 .wma .webm".split()
)
SPEAKERS = "speakers.txt"  # in a multi-speaker corpus: their names, one per line; each has a folder in wavs/
TABLE = "import.tsv"  # the outcome for each recording
LONGEST_CLIP = 20.0  # s; longer ones are cut or reported
LONGEST_SILENCE = 0.75  # s at either end
USUAL_RATE = AudioConfig.sampling_rate  # Hz, of the published vocoders
# Kinds of findings in a data report that importing fixes.
MENDED_BY_IMPORT = tuple("format channels sampling_rate range silence near_silent level dc_offset long".split())


@dataclass(frozen=True)
class ImportOptions:
    """Settings for the clips of the new corpus."""

    sampling_rate: int = option(USUAL_RATE, "sampling rate of the clips, Hz", least=8000, most=192000)
    loudness: float = option(-23.0, "EBU R128 loudness of each clip, LUFS; less if its peak exceeds -1 dBFS", most=-5)
    silence: float = option(0.15, "seconds of silence to keep at both ends", least=0, most=10)
    speakers: str = option(
        "auto",
        "how to find speakers: auto: from the transcripts, else from a folder that the clip's name starts with "
        "(p225/p225_001); folders: from the first folder in which paths differ; none: one speaker",
        choices=("auto", "folders", "none"),
    )
    columns: str | None = option(
        None, "columns of tables, - for unused ones: path,speaker,-,text (default: from headings, else from content)"
    )
    cut_longer: float = option(
        LONGEST_CLIP,
        "cut recordings with more seconds of sound than this at sentences of the transcript; 0: never",
        least=0,
    )
    language: str | None = option(
        None, "eSpeak NG language of recordings to cut: de, fr-fr, es (default: guessed from the texts, else en-us)"
    )
    num_workers: int | None = option(None, "processes (default: one per core)", least=1, most=1024)

    @property
    def of_clips(self) -> str:
        """The settings that a clip depends on; an earlier run's clip is kept if they are the same."""
        made = f"{self.sampling_rate} Hz, {self.loudness:g} LUFS, {self.silence:g} s"
        return f"{made}, cut beyond {self.cut_longer:g} s, {self.language}"


def import_command(corpus: Path) -> str:
    """Return the command that imports the recordings in ``corpus``."""
    target = corpus.with_name(f"{corpus.name}_{USUAL_RATE}") if corpus.name else Path(f"corpus_{USUAL_RATE}")
    return f"bash scripts/import_recordings.sh {shlex.quote(str(corpus))} {shlex.quote(str(target))}"


def name_import(corpus: Path) -> str:
    """Return the end of a message about a corpus's recordings: the command to run, or "" without audio files."""
    has_sound = any(path.suffix.lower() in SUFFIXES for path in corpus.rglob("*"))
    return f"; run {import_command(corpus)}" if has_sound else ""
