"""Options of importing recordings, and the command that does it, for messages."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from common.config import AudioConfig
from common.options import option

# What recordings are called, the better formats first; their content decides how they are read.
SUFFIXES = tuple(
    ".wav .flac .aif .aiff .opus .ogg .oga .m4a .mp4 .mov .mkv .3gp .amr .caf .aac .mp3 .wma .webm".split()
)
SPEAKERS = "speakers.txt"  # of a corpus of several: their names, one a line; each has a folder of wavs/
TABLE = "import.tsv"  # what became of each recording
LONGEST_CLIP = 20.0  # s: longer ones are cut, or noted
LONGEST_SILENCE = 0.75  # s at an end
USUAL_RATE = AudioConfig.sampling_rate  # Hz: what vocoders are published for
# Kinds of findings of a data report that are none once the recordings are imported.
MENDED_BY_IMPORT = tuple("format channels sampling_rate range silence near_silent level dc_offset long".split())


@dataclass(frozen=True)
class ImportOptions:
    """What the clips of the new corpus are like."""

    sampling_rate: int = option(USUAL_RATE, "of the clips, Hz", least=8000, most=192000)
    loudness: float = option(-23.0, "of each clip by EBU R128, LUFS; less where its peak would pass -1 dBFS", most=-5)
    silence: float = option(0.15, "seconds of silence to keep at both ends", least=0, most=10)
    speakers: str = option(
        "auto",
        "who speaks: auto: by the transcripts, else by the folder that a clip's name begins with (p225/p225_001); "
        "folders: by the first folder that tells recordings apart; none: one speaker",
        choices=("auto", "folders", "none"),
    )
    columns: str | None = option(
        None, "of tables, - for one without meaning: path,speaker,text (default: by their headings, else by content)"
    )
    cut_longer: float = option(
        LONGEST_CLIP,
        "seconds of sound beyond which a recording is cut at the sentences of its transcript; 0: never",
        least=0,
    )
    language: str | None = option(
        None, "of recordings to cut, any of eSpeak NG's: de, fr-fr, es (default: what the texts look like, else en-us)"
    )
    num_workers: int | None = option(None, "processes (default: one for each core)", least=1, most=1024)

    @property
    def of_clips(self) -> str:
        """The settings that a clip depends on, by which an earlier run's is kept."""
        made = f"{self.sampling_rate} Hz, {self.loudness:g} LUFS, {self.silence:g} s"
        return f"{made}, cut beyond {self.cut_longer:g} s, {self.language}"


def import_command(corpus: Path) -> str:
    """The command that makes a corpus of the recordings in ``corpus``."""
    target = corpus.with_name(f"{corpus.name}_{USUAL_RATE}") if corpus.name else Path(f"corpus_{USUAL_RATE}")
    return f"bash scripts/import_recordings.sh {shlex.quote(str(corpus))} {shlex.quote(str(target))}"


def name_import(corpus: Path) -> str:
    """Words that end a message on recordings of a corpus: the command to run; "" where no sound file is there."""
    has_sound = any(path.suffix.lower() in SUFFIXES for path in corpus.rglob("*"))
    return f"; run {import_command(corpus)}" if has_sound else ""
