"""What is measured of each utterance and of all of them, as JSON and as a table."""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import InputError
from common.evaluation.metrics import SpeechDistance
from common.files import write_json, write_text
from common.recognition.error_rates import ErrorCounts

_NAME_WIDTH = 24  # characters of an utterance's name in a table on the terminal


@dataclass(frozen=True)
class Result:
    """One utterance; None stands where something could not be measured, as nothing was given to measure it by."""

    name: str  # of its files, "a/b.wav"
    text: str  # as the list has it
    key: str = ""  # what tells it from an utterance of the same name in another list
    reference: str | None = None  # the words to be heard, as the recogniser writes them
    heard: str | None = None  # in the synthesised sound
    errors: ErrorCounts | None = None
    recording: str | None = None  # path of the recorded clip
    heard_recording: str | None = None
    recording_errors: ErrorCounts | None = None
    distance: SpeechDistance | None = None  # from the recorded clip
    duration: float | None = None  # s of synthesised sound
    work: float | None = None  # s of work, from symbols to sound
    cut: bool = False  # the voice did not end it and was stopped
    error: str | None = None  # why something is missing that should be there

    @property
    def speed(self) -> float | None:
        """Real-time factor: seconds of sound a second of work."""
        return self.duration / self.work if self.duration and self.work else None

    @staticmethod
    def from_plain(row: dict[str, Any]) -> "Result":
        """The inverse of ``asdict``."""
        kinds = {"errors": ErrorCounts, "recording_errors": ErrorCounts, "distance": SpeechDistance}
        parts = {name: kind(**row[name]) for name, kind in kinds.items() if row[name] is not None}
        return Result(**{**row, **parts})


@dataclass(frozen=True)
class Column:
    """One figure of an utterance, and how people see it."""

    key: str  # in the JSON
    title: str
    unit: str
    value: Callable[[Result], float | None]  # in that unit
    form: str = "{:.1f}"
    scale: float = 1.0  # of the unit: 100 for %, which the JSON does not count in

    def shown(self, value: float | None) -> str:
        """A value for people; what is not there is a hyphen."""
        return "-" if _absent(value) else self.form.format(value * self.scale)


def _absent(value: float | None) -> bool:
    return value is None or math.isnan(value)


def _distance(name: str) -> Callable[[Result], float | None]:
    return lambda result: None if result.distance is None else getattr(result.distance, name)


def _rate(counts: str, name: str) -> Callable[[Result], float | None]:
    def value(result: Result) -> float | None:
        errors = getattr(result, counts)
        return None if errors is None else getattr(errors, name)

    return value


COLUMNS = (
    Column("wer", "WER", "%", _rate("errors", "wer"), scale=100),
    Column("cer", "CER", "%", _rate("errors", "cer"), scale=100),
    Column("recording_wer", "WER of recording", "%", _rate("recording_errors", "wer"), scale=100),
    Column("recording_cer", "CER of recording", "%", _rate("recording_errors", "cer"), scale=100),
    Column("mcd_db", "MCD", "dB", _distance("mcd_db"), form="{:.2f}"),
    Column("f0_rmse_cents", "F0 RMSE", "cents", _distance("f0_rmse_cents"), form="{:.0f}"),
    Column("voicing_error", "voicing error", "%", _distance("voicing_error"), scale=100),
    Column("rtf", "RTF", "x", lambda result: result.speed),
    Column("duration", "duration", "s", lambda result: result.duration, form="{:.2f}"),
)


def columns_of(*, words: bool, recordings: bool) -> list[Column]:
    """The columns that can have values: where ``words`` are heard and known, where there are ``recordings``."""
    left_out = set() if recordings else {"mcd_db", "f0_rmse_cents", "voicing_error"}
    if not words:
        left_out |= {"wer", "cer"}
    if not (words and recordings):
        left_out |= {"recording_wer", "recording_cer"}
    return [column for column in COLUMNS if column.key not in left_out]


def columns_with_values(results: Iterable[Result]) -> list[Column]:
    """The columns in which at least one utterance has a value."""
    results = list(results)
    return [column for column in COLUMNS if any(not _absent(column.value(result)) for result in results)]


def averages(results: Sequence[Result]) -> dict[str, float | None]:
    """Each column over all utterances that have it.

    Error rates are those of the whole list (errors of all utterances by words of all); the real-time factor is all
    sound by all work; the others are means over utterances.
    """
    means: dict[str, float | None] = {}
    for column in COLUMNS:
        values = [value for result in results if not _absent(value := column.value(result))]
        means[column.key] = float(np.mean(values)) if values else None
    for prefix, counts in (("", "errors"), ("recording_", "recording_errors")):
        known = [getattr(result, counts) for result in results if getattr(result, counts) is not None]
        if known:
            total = sum(known, ErrorCounts())
            means |= {f"{prefix}wer": total.wer, f"{prefix}cer": total.cer}
    timed = [result for result in results if result.speed is not None]
    if timed:
        means["rtf"] = sum(result.duration for result in timed) / sum(result.work for result in timed)
    return means


def save_results(path: Path, results: Sequence[Result], *, settings: dict[str, Any]) -> None:
    """Write ``settings``, averages and utterances as JSON; rates are parts of 1, what is absent is null."""
    rows = []
    for result in results:
        row = asdict(result)
        for hidden in ("errors", "recording_errors", "distance", "key"):
            del row[hidden]
        figures = {column.key: column.value(result) for column in COLUMNS}
        if result.distance is not None:
            figures["f0_rmse_hz"] = result.distance.f0_rmse_hz
        row |= {key: None if _absent(value) else value for key, value in figures.items()}
        rows.append(row)
    write_json(path, {"settings": settings, "averages": averages(results), "utterances": rows})


class Table:
    """Lines of a table for the terminal, one at a time, as utterances are done."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns

    @property
    def header(self) -> str:
        """Titles with units."""
        titles = (f"{column.title} ({column.unit})" for column in self._columns)
        return "  ".join([f"{'utterance':<{_NAME_WIDTH}}", *titles])

    def row(self, result: Result) -> str:
        """The line of an utterance."""
        line = self._line(result.name.removesuffix(".wav"), {c.key: c.value(result) for c in self._columns})
        return f"{line}  {result.error}" if result.error else line

    def means(self, results: Sequence[Result]) -> str:
        """The line of them all."""
        return self._line(f"all {len(results)}", averages(results))

    def _line(self, name: str, values: dict[str, float | None]) -> str:
        if len(name) > _NAME_WIDTH:
            name = f"...{name[3 - _NAME_WIDTH :]}"
        cells = [
            f"{column.shown(values[column.key]):>{len(column.title) + len(column.unit) + 3}}"
            for column in self._columns
        ]
        return "  ".join([f"{name:<{_NAME_WIDTH}}", *cells])


class Journal:
    """The results so far on the disk, one a line, so that a run that was stopped can be gone on with.

    The first line says of which settings they are; a line that a kill cut short ends what counts.
    """

    def __init__(self, path: Path, *, settings: dict[str, Any]) -> None:
        self._path = path
        self._settings = settings

    def read(self) -> list[Result]:
        """The results of an earlier run of the same settings; none if there is no such run."""
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
            if not lines or json.loads(lines[0]) != json.loads(json.dumps(self._settings)):
                return []
        except (OSError, UnicodeDecodeError, json.JSONDecodeError):
            return []
        results = []
        for line in lines[1:]:
            try:
                results.append(Result.from_plain(json.loads(line)))
            except (json.JSONDecodeError, KeyError, TypeError):
                break
        return results

    def start(self, results: Sequence[Result]) -> None:
        """Begin anew with ``results``."""
        try:
            write_text(self._path, "".join(f"{json.dumps(line)}\n" for line in [self._settings, *map(asdict, results)]))
        except OSError as error:
            raise InputError(f"{self._path}: cannot be written ({error.strerror}); choose another --output") from error

    def add(self, result: Result) -> None:
        """Keep one more result."""
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{json.dumps(asdict(result))}\n")
        except OSError as error:
            raise InputError(f"{self._path}: cannot be written ({error.strerror})") from error
