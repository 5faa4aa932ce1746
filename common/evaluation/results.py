"""Figures of each utterance and of all of them: files, a table, and a journal of the results so far."""

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.config import from_plain
from common.errors import InputError
from common.evaluation.metrics import SpeechDistance
from common.evaluation.sound import BANDS, SoundFigures
from common.files import check_file, read_text, write_json, write_text, writing
from common.pages import Term
from common.recognition import ErrorCounts

JOURNAL, RESULTS, PAGE = "utterances.jsonl", "evaluation.json", "index.html"  # files of an evaluation
RECORDING, GRIFFIN_LIM = "recording", "griffin-lim"  # what an utterance is shown beside
WAVES = "synthesised"  # its folder of sounds, as in folders of earlier versions, which are resumed
_NAME_WIDTH = 24  # characters of an utterance's name in a table on the terminal


def files_of(folder: Path, name: str) -> dict[str, Path]:
    """Where an evaluation in ``folder`` has an utterance's sound, what it is shown beside, and its plot."""
    return {
        "synthesized": folder / WAVES / name,
        "recorded": folder / "recorded" / name,
        GRIFFIN_LIM: folder / GRIFFIN_LIM / name,
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
    distance: SpeechDistance | None = None  # from the recorded clip, aligned
    sound: SoundFigures | None = None
    beside: tuple["Result", ...] = ()  # the figures of the recording, and of a copy by Griffin-Lim, by these names
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

    @property
    def voicing_error(self) -> float | None:
        """The voicing error, over all frames for a copy of a recording and over aligned frames otherwise."""
        measured = self.sound if self.distance is None else self.distance
        return None if measured is None else measured.voicing_error

    def files(self, folder: Path) -> list[Path]:
        """All files of it that an evaluation in ``folder`` has."""
        beside = {one.name for one in self.beside}
        absent = {"recorded": self.recording is None, GRIFFIN_LIM: GRIFFIN_LIM not in beside}
        return [path for kind, path in files_of(folder, self.name).items() if not absent.get(kind)]


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


def _attribute(result: Result, path: str) -> float | None:
    """The value of a dotted attribute; None where a part of it is None, or it is NaN."""
    found: Any = result
    for name in path.split("."):
        found = None if found is None else getattr(found, name)
    return None if found is None or math.isnan(found) else found


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
    needs: str = ""  # what it can only be measured with: "words", "recordings", "alignment", "copies" or a package
    ranked: bool = True  # the highest value is the worst; else none is better than another
    higher_is_better: bool = False
    weight: str = ""  # attribute of `Result`, dotted, that a mean over utterances counts each by

    @property
    def term(self) -> Term:
        """Its name on the page."""
        return Term(self.title, self.meaning, self.unit)

    def value(self, result: Result) -> float | None:
        """The figure of an utterance; None where it was not measured, or there was nothing to measure it in (NaN)."""
        return _attribute(result, self.attribute)

    def mean(self, results: Sequence[Result]) -> float | None:
        """The mean over the utterances that have a value."""
        known = [one for one in results if self.value(one) is not None]
        weights = [_attribute(one, self.weight) or 0.0 for one in known] if self.weight else None
        return float(np.average([self.value(one) for one in known], weights=weights)) if known else None

    def shown(self, value: float | None) -> str:
        """A value as text; a hyphen where there is none."""
        return "-" if value is None else self.form.format(value * self.scale)

    def worst_of(self, results: Sequence[Result]) -> Result | None:
        """The utterance with the worst value; None where all are equal, or none is worse than another."""
        known = [(value, result) for result in results if (value := self.value(result)) is not None]
        if not self.ranked or len({value for value, _ in known}) < 2:
            return None
        return (min if self.higher_is_better else max)(known, key=lambda pair: pair[0])[1]


_WORDS: dict[str, Any] = {"scale": 100, "needs": "words"}
_WER = "words substituted, deleted and inserted in the recognizer's transcript, of the reference's words; "
_CER = "characters substituted, deleted and inserted in the recognizer's transcript, of the reference's characters; "
_MCD = (
    "mel-cepstral distortion after alignment: the root mean square difference of the two spectral envelopes; 0 is the "
    "recording itself"
)
_F0 = "root mean square difference of pitch where both are voiced; 100 cents are a semitone"
_VOICING = "share of aligned frames that are voiced in one and not in the other"
_PESQ = "perceptual quality of a copy (ITU-T P.862.2, wide band), 1 to 4.64; higher is better"
_STOI = "short-time objective intelligibility of a copy, up to 1; higher is better"
_MEL = "mean absolute difference of the copy's and the recording's natural-log mels"
_MEDIAN = "median error of the copy's pitch where both are voiced; 100 cents are a semitone"
_MEAN = "mean error of the copy's pitch where both are voiced"
_PULSES = "strength of the pulses of this band in voiced frames: 1 is a pulse train; best as the recording's"
_UNVOICED = "the same in unvoiced frames, where more than the recording's is a buzz"
_HNR = "harmonics-to-noise ratio of voiced frames less the recording's; below 0 is noisier, above 0 more buzzing"
COLUMNS = (
    Column("wer", "WER", "%", "errors.wer", f"word error rate: {_WER}lower is better", **_WORDS),
    Column("cer", "CER", "%", "errors.cer", f"character error rate: {_CER}lower is better", **_WORDS),
    Column("pesq", "PESQ", "", "sound.pesq", _PESQ, form="{:.3f}", needs="pesq", higher_is_better=True),
    Column("stoi", "STOI", "", "sound.stoi", _STOI, form="{:.4f}", needs="pystoi", higher_is_better=True),
    Column("mel_distance", "mel distance", "", "sound.mel_distance", _MEL, form="{:.3f}", needs="copies"),
    Column("f0_median_cents", "F0 median", "cents", "sound.f0_median_cents", _MEDIAN, needs="copies"),
    Column("f0_mean_cents", "F0 mean", "cents", "sound.f0_mean_cents", _MEAN, needs="copies"),
    Column("mcd_db", "MCD", "dB", "distance.mcd_db", _MCD, form="{:.2f}", needs="alignment"),
    Column("f0_rmse_cents", "F0 RMSE", "cents", "distance.f0_rmse_cents", _F0, form="{:.0f}", needs="alignment"),
    Column("voicing_error", "voicing error", "%", "voicing_error", _VOICING, scale=100, needs="recordings"),
    *(
        Column(
            f"{title}_{band}",
            f"{title} {low / 1000:g}-{high / 1000:g} kHz",
            "",
            f"sound.{title}_{band}",
            meaning,
            form="{:.3f}",
            ranked=False,
            weight=f"sound.n_{frames}",
        )
        for band, (low, high) in BANDS.items()
        for title, frames, meaning in (("pulses", "voiced", _PULSES), ("unvoiced", "unvoiced", _UNVOICED))
    ),
    Column(
        "harmonicity_bias_db",
        "HNR bias",
        "dB",
        "sound.harmonicity_bias_db",
        _HNR,
        form="{:+.1f}",
        needs="recordings",
        ranked=False,
    ),
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


def columns_of(available: Collection[str]) -> list[Column]:
    """The columns that can have values with what is ``available``, as `Column.needs` has it."""
    return [column for column in COLUMNS if not column.needs or column.needs in available]


def columns_with_values(results: Sequence[Result]) -> list[Column]:
    """The columns in which at least one utterance has a value."""
    return [column for column in COLUMNS if any(column.value(result) is not None for result in results)]


def averages(results: Sequence[Result]) -> dict[str, float | None]:
    """Each column over all utterances that have it.

    Error rates are those of the whole list (errors of all utterances by words of all); RTF and speed are of all work
    and all sound; the others are means over utterances.
    """
    means = {column.key: column.mean(results) for column in COLUMNS}
    if known := [result.errors for result in results if result.errors is not None]:
        total = sum(known, ErrorCounts())
        means |= {"wer": total.wer, "cer": total.cer}
    timed = [(result.duration, result.work) for result in results if result.duration and result.work]
    if timed:
        sound, work = map(sum, zip(*timed))
        means |= {"rtf": sound / work, "real_time_factor": work / sound}
    return means


def averages_beside(results: Sequence[Result]) -> dict[str, dict[str, float | None]]:
    """`averages` of what the results are shown beside, by name."""
    rows = [row for result in results for row in result.beside]
    return {name: averages([row for row in rows if row.name == name]) for name in dict.fromkeys(r.name for r in rows)}


def save_results(path: Path, results: Sequence[Result], *, extent: Extent, settings: dict[str, Any]) -> None:
    """Write ``settings``, averages and utterances as JSON; rates are parts of 1, what is absent is null."""
    rows = []
    for result in results:
        row = asdict(result) | figures_of(result)
        for hidden in ("errors", "distance", "sound", "key"):
            del row[hidden]
        row["beside"] = {one.name: {"heard": one.heard} | figures_of(one) for one in result.beside}
        if result.distance is not None:
            row["f0_rmse_hz"] = _F0_RMSE_HZ.value(result)
        rows.append(row)
    done = {"n_done": extent.n_done, "n_listed": extent.n_listed, "stopped": extent.stopped}
    means = {"averages": averages(results), "averages_beside": averages_beside(results)}
    write_json(path, {"settings": settings, "extent": done, **means, "utterances": rows})


def table_row(columns: Sequence[Column], name: str, values: dict[str, float | None] | None = None) -> str:
    """A line of a table for the terminal; the header, titles with units, where there are no ``values``."""
    if len(name) > _NAME_WIDTH:
        name = f"...{name[3 - _NAME_WIDTH :]}"
    cells = [f"{column.term!s:>6}" for column in columns]  # as wide as values are, at least
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
