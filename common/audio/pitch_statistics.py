"""A voice's pitch statistics, and the file that keeps them with its features."""

from dataclasses import dataclass
from pathlib import Path

from common.config import from_plain
from common.errors import InputError
from common.files import read_json


@dataclass(frozen=True)
class PitchStatistics:
    """Mean and standard deviation of voiced pitch, Hz; they belong to a model's weights as much as a bias does."""

    mean: float
    std: float


def read_pitch_statistics(path: Path) -> PitchStatistics:
    """The statistics in the JSON file that extract_mels.py writes next to ``pitch_char/``.

    Raises:
        InputError: the file is missing or malformed, or the numbers are no statistics of a voice.
    """
    statistics: PitchStatistics = from_plain(PitchStatistics, read_json(path), where=str(path))
    if statistics.mean <= 0 or statistics.std <= 0:
        raise InputError(f"{path}: mean {statistics.mean} Hz, std {statistics.std} Hz: expected two numbers above 0")
    return statistics
