"""Features of a corpus: mel-spectrograms, durations and pitch of many recordings."""

from .batches import (
    TeacherModel as TeacherModel,
    load_teacher as load_teacher,
    map_in_processes as map_in_processes,
    mel_settings as mel_settings,
    open_teacher as open_teacher,
    stored_teacher as stored_teacher,
)
from .corpus import (
    extract_corpus as extract_corpus,
    given_statistics as given_statistics,
    read_lists as read_lists,
    refuse_duplicates as refuse_duplicates,
    table as table,
    teacher_forced_table as teacher_forced_table,
)
from .features import ExtractionPlan as ExtractionPlan, text_front_end as text_front_end
from .options import (
    CorpusOptions as CorpusOptions,
    ExtractionOptions as ExtractionOptions,
    TeacherForcingOptions as TeacherForcingOptions,
)
from .teacher_forcing import make_teacher_forced_mels as make_teacher_forced_mels
