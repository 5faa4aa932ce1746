"""Features of a corpus: mel-spectrograms, durations and pitch of many recordings."""

from .corpus import (
    earlier_statistics as earlier_statistics,
    extract_corpus as extract_corpus,
    read_lists as read_lists,
    refuse_duplicates as refuse_duplicates,
)
from .features import ExtractionPlan as ExtractionPlan, text_front_end as text_front_end
from .teacher import TeacherModel as TeacherModel
from .teacher_forcing import make_teacher_forced_mels as make_teacher_forced_mels
from .workers import WorkerPool as WorkerPool
