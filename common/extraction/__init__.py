"""Features of a corpus: mel-spectrograms, durations and pitch of many recordings."""

from common.extraction.corpus import earlier_statistics, extract_corpus, read_lists, refuse_duplicates
from common.extraction.features import ExtractionPlan, text_front_end
from common.extraction.teacher import TeacherModel
from common.extraction.teacher_forcing import make_teacher_forced_mels
from common.extraction.workers import WorkerPool
