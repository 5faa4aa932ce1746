"""Figures of each utterance and of all of them: files, a table, and a journal of the results so far."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.config import from_plain
from common.errors import InputError
from common.evaluation.metrics import SpeechDistance
from common.files import check_file, read_text, write_json, write_text, writing
from common.pages import Term
from common.recognition import ErrorCounts

JOURNAL, RESULTS, PAGE = "utterances.jsonl", "evaluation.json", "index.html"  # files of an evaluation
WAVES = "synthesised"  # its folder of sounds, as in folders of earlier versions, which are resumed
_NAME_WIDTH = 24  # characters of an utterance's name in a table on the terminal


def files_of(folder: Path, name: str) -> dict[str, Path]:
    """Where an evaluation in ``folder`` has an utterance's sound, its recording (copied for the page) and its plot."""
    return {
        "synthesized": folder / WAVES / name,
        "recorded": folder / "recorded" / name,
        "plot": (folder / "plots" / name).with_suffix(".svg"),
    }


@dataclass(frozen=True)
class Result:
    """The figures of one utterance; None where one could not be measured, as what it needs was not given."""

    name: str  # of its files, "a/b.wav"
    text: str  # as the list has it
    key: str = ""  # digest of its inputs, `EvaluationItem.key`
    reference: str | None = None  # the words to recognize, as the recognizer writes them
    heard: str | None = None  # transcript of the synthesized sound
    errors: ErrorCounts | None = None
    recording: str | None = None  # path of the recorded clip
    heard_recording: str | None = None  # its transcript
    recording_errors: ErrorCounts | None = None
    distance: SpeechDistance | None = None  # from the recorded clip
    duration: float | None = None  # s of synthesized sound
    work: float | None = None  # s of work, from symbols to sound
    cut: bool = False  # the voice did not end it and was stopped
    silent: bool = False  # the voice made hardly a frame of it
    error: str | None = None  # why a figure is missing

    @property
    def speed(self) -> float | None:
        """Seconds of sound a second of work."""
        return self.duration / self.work if self.duration and self.work else None

    @property
    def real_time_factor(self) -> float | None:
        """Seconds of work a second of sound."""
        return self.work / self.duration if self.duration and self.work else None

    def files(self, folder: Path) -> list[Path]:
        """All files of it that an evaluation in ``folder`` has."""
        kinds = files_of(folder, self.name)
        return [path for kind, path in kinds.items() if kind != "recorded" or self.recording is not None]


@dataclass(frozen=True)
class Extent:
    """How much of its list an evaluation has done."""

    n_done: int
    n_listed: int

    @property
    def stopped(self) -> bool:
        """Whether utterances are left, which starting it again evaluates."""
        return self.n_done < self.n_listed

    def __str__(self) -> str:
        return f"{self.n_done} of {self.n_listed} (stopped)" if self.stopped else f"all {self.n_done}"


@dataclass(frozen=True)
class Column:
    """One figure of an utterance, and how it is shown."""

    key: str  # in the JSON
    title: str
    unit: str
    attribute: str  # of `Result`, dotted
    meaning: str
    form: str = "{:.1f}"
    scale: float = 1.0  # of the unit: 100 for %, which the JSON does not count in
    needs: tuple[str, ...] = ()  # out of "words" and "recordings": what it can only be measured with
    ranked: bool = True  # the highest value is the worst; else none is better than another

    @property
    def term(self) -> Term:
        """Its name on the page."""
        return Term(self.title, self.meaning, self.unit)

    def value(self, result: Result) -> float | None:
        """The figure of an utterance; None where it was not measured, or there was nothing to measure it in (NaN)."""
        found: Any = result
        for name in self.attribute.split("."):
            found = None if found is None else getattr(found, name)
        return None if found is None or math.isnan(found) else found

    def shown(self, value: float | None) -> str:
        """A value as text; a hyphen where there is none."""
        return "-" if value is None else self.form.format(value * self.scale)

    def worst_of(self, results: Sequence[Result]) -> Result | None:
        """The utterance with the worst value; None where all are equal, or none is worse than another."""
        known = [(value, result) for result in results if (value := self.value(result)) is not None]
        if not self.ranked or len({value for value, _ in known}) < 2:
            return None
        return max(known, key=lambda pair: pair[0])[1]


_WORDS: dict[str, Any] = {"scale": 100, "needs": ("words",)}
_BOTH: dict[str, Any] = {"scale": 100, "needs": ("words", "recordings")}
_RECORDINGS = ("recordings",)
_WER = "words substituted, deleted and inserted in the recognizer's transcript, of the reference's words; "
_CER = "characters substituted, deleted and inserted in the recognizer's transcript, of the reference's characters; "
_OWN = "the same of the recording: the errors that the recognizer makes itself"
_MCD = (
    "mel-cepstral distortion after alignment: the root mean square difference of the two spectral envelopes; 0 is the "
    "recording itself"
)
_F0 = "root mean square difference of pitch where both are voiced; 100 cents are a semitone"
_VOICING = "share of aligned frames that are voiced in one and not in the other"
COLUMNS = (
    Column("wer", "WER", "%", "errors.wer", f"word error rate: {_WER}lower is better", **_WORDS),
    Column("cer", "CER", "%", "errors.cer", f"character error rate: {_CER}lower is better", **_WORDS),
    Column("recording_wer", "WER of recording", "%", "recording_errors.wer", f"word error rate, {_OWN}", **_BOTH),
    Column("recording_cer", "CER of recording", "%", "recording_errors.cer", f"character error rate, {_OWN}", **_BOTH),
    Column("mcd_db", "MCD", "dB", "distance.mcd_db", _MCD, form="{:.2f}", needs=_RECORDINGS),
    Column("f0_rmse_cents", "F0 RMSE", "cents", "distance.f0_rmse_cents", _F0, form="{:.0f}", needs=_RECORDINGS),
    Column("voicing_error", "voicing error", "%", "distance.voicing_error", _VOICING, scale=100, needs=_RECORDINGS),
    Column(
        "real_time_factor",
        "RTF",
        "s/s",
        "real_time_factor",
        "real-time factor: seconds of work, from symbols to samples, for a second of sound; below 1 is faster than "
        "real time",
        form="{:.3f}",
    ),
    Column("rtf", "speed", "x real time", "speed", "seconds of sound in a second of work: 1 / RTF", ranked=False),
    Column("duration", "duration", "s", "duration", "length of the synthesized sound", form="{:.2f}", ranked=False),
)
_F0_RMSE_HZ = Column("f0_rmse_hz", "F0 RMSE", "Hz", "distance.f0_rmse_hz", _F0)  # in the JSON alone


def figures_of(result: Result) -> dict[str, float | None]:
    """The figures of an utterance by the columns' keys."""
    return {column.key: column.value(result) for column in COLUMNS}


def columns_of(*, words: bool, recordings: bool) -> list[Column]:
    """The columns that can have values: with transcripts of known ``words``, with ``recordings``."""
    available = {"words": words, "recordings": recordings}
    return [column for column in COLUMNS if all(available[name] for name in column.needs)]


def columns_with_values(results: Sequence[Result]) -> list[Column]:
    """The columns in which at least one utterance has a value."""
    return [column for column in COLUMNS if any(column.value(result) is not None for result in results)]


def averages(results: Sequence[Result]) -> dict[str, float | None]:
    """Each column over all utterances that have it.

    Error rates are those of the whole list (errors of all utterances by words of all); RTF and speed are of all work
    and all sound; the others are means over utterances.
    """
    means: dict[str, float | None] = {}
    for column in COLUMNS:
        values = [value for result in results if (value := column.value(result)) is not None]
        means[column.key] = float(np.mean(values)) if values else None
    for prefix, counts in (("", "errors"), ("recording_", "recording_errors")):
        known = [getattr(result, counts) for result in results if getattr(result, counts) is not None]
        if known:
            total = sum(known, ErrorCounts())
            means |= {f"{prefix}wer": total.wer, f"{prefix}cer": total.cer}
    timed = [(result.duration, result.work) for result in results if result.duration and result.work]
    if timed:
        sound, work = map(sum, zip(*timed))
        means |= {"rtf": sound / work, "real_time_factor": work / sound}
    return means


def save_results(path: Path, results: Sequence[Result], *, extent: Extent, settings: dict[str, Any]) -> None:
    """Write ``settings``, averages and utterances as JSON; rates are parts of 1, what is absent is null."""
    rows = []
    for result in results:
        row = asdict(result) | figures_of(result)
        for hidden in ("errors", "recording_errors", "distance", "key"):
            del row[hidden]
        if result.distance is not None:
            row["f0_rmse_hz"] = _F0_RMSE_HZ.value(result)
        rows.append(row)
    done = {"n_done": extent.n_done, "n_listed": extent.n_listed, "stopped": extent.stopped}
    write_json(path, {"settings": settings, "extent": done, "averages": averages(results), "utterances": rows})


def table_row(columns: Sequence[Column], name: str, values: dict[str, float | None] | None = None) -> str:
    """A line of a table for the terminal; the header, titles with units, where there are no ``values``."""
    if len(name) > _NAME_WIDTH:
        name = f"...{name[3 - _NAME_WIDTH :]}"
    cells = [f"{column.title} ({column.unit})" for column in columns]
    if values is not None:
        cells = [f"{column.shown(values[column.key]):>{len(title)}}" for column, title in zip(columns, cells)]
    return "  ".join([f"{name:<{_NAME_WIDTH}}", *cells])


@dataclass(frozen=True)
class Journal:
    """The results so far in a file, one a line, so that a run that was stopped can be resumed.

    The first line holds the settings. Reading ends at a line that a kill has cut short.
    """

    path: Path
    settings: dict[str, Any]

    def read(self) -> list[Result]:
        """The results of an earlier run of the same settings; none if there is no such run.

        Raises:
            InputError: a folder, a pipe or a device is in its place.
        """
        if not self.path.exists():
            return []
        check_file(self.path)
        try:
            lines = read_text(self.path).splitlines()
            if not lines or json.loads(lines[0]) != json.loads(json.dumps(self.settings)):
                return []
        except (InputError, ValueError, RecursionError):
            return []
        results = []
        for line in lines[1:]:
            try:
                results.append(from_plain(Result, json.loads(line), where=""))
            except (ValueError, RecursionError, InputError):
                break
        return results

    def start(self, results: Sequence[Result]) -> None:
        """Begin anew with ``results``."""
        with writing(self.path, "; choose another --output"):
            write_text(self.path, "".join(f"{json.dumps(line)}\n" for line in [self.settings, *map(asdict, results)]))

    def add(self, result: Result) -> None:
        """Append a result."""
        with writing(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(asdict(result))}\n")
