"""The model that made a folder of durations or mels (the teacher), and its text front end, as stored there."""

from dataclasses import dataclass, replace
from pathlib import Path

from common.config import from_plain
from common.files import read_json
from common.text.cleaners import ENGLISH_V3
from common.text.config import TextConfig

TEACHER = "follower.json"  # beside features that a teacher made


@dataclass(frozen=True)
class StoredTeacher:
    """The model that made a folder's features, as described in the file `TEACHER`."""

    model: str
    sha256: str  # of its checkpoint
    text: TextConfig
    ema: bool = False  # older folders, which don't say so, were made with the raw weights
    unknown_symbols: str = "error"


def text_of_teacher(text: TextConfig, durations: Path) -> tuple[TextConfig, str] | None:
    """Return the front end of the teacher that made a folder of ``durations``, and how it treated unknown symbols.

    Returns None if ``text`` is neither the default nor the teacher's, or if the durations come from elsewhere.
    """
    path = durations / TEACHER
    if not path.is_file():
        return None
    stored: StoredTeacher = from_plain(StoredTeacher, read_json(path), where=str(path))
    p_arpabet = 1.0 if stored.text.p_arpabet else 0.0  # a teacher reads every word as phones
    taught: TextConfig = replace(stored.text, p_arpabet=p_arpabet, speakers=text.speakers)
    is_default = text == TextConfig(cleaners=(ENGLISH_V3,), speakers=text.speakers)
    return (taught, stored.unknown_symbols) if is_default or text == taught else None
