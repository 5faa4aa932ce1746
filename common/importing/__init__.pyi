"""Recordings as people have them become a corpus: any sound file and transcripts of many forms, wherever they lie."""

from .advice import check_recordings as check_recordings, long_clips as long_clips, note_faults as note_faults
from .clips import ImportedClip as ImportedClip, level_and_trim as level_and_trim
from .cutting import AlignedClip as AlignedClip, AlignedReading as AlignedReading, align_reading as align_reading
from .options import ImportOptions as ImportOptions
from .recordings import safe_name as safe_name
from .run import import_recordings as import_recordings
from .subtitles import read_reading_text as read_reading_text
