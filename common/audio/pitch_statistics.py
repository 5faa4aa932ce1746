"""A voice's pitch statistics, and the file that keeps them with its features."""

from dataclasses import dataclass
from pathlib import Path

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
    values = read_json(path)
    try:
        mean, std = float(values["mean"]), float(values["std"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f'{path}: expected {{"mean": <Hz>, "std": <Hz>}}') from error
    if not (0 < mean < float("inf") and 0 < std < float("inf")):
        raise InputError(f"{path}: mean {mean} Hz, std {std} Hz: expected two numbers above 0")
    return PitchStatistics(mean=mean, std=std)
