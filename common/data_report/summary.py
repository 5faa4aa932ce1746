"""What a corpus is like: distributions, speakers, file formats, characters, and the JSON of all figures."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from common.audio.pitch import statistics
from common.config import AudioConfig, TextConfig, to_plain
from common.data_report.arguments import Limits
from common.data_report.clip import PITCH_EDGES, Clip, Sound, measured, quantile
from common.data_report.findings import KINDS, SMALLEST_GROUP, Finding
from common.errors import InputError

PLACES = 5  # lines named for a character
FEW_CLIPS = 20  # of a speaker: too few to learn a voice from


@dataclass(frozen=True)
class ClipFigure:
    """A figure that clips have."""

    unit: str
    digits: int  # shown after the point
    meaning: str
    value: Callable[[Clip, Sound], float | None]  # None: the clip has none


_PITCH = "of the voiced parts' pitch, 50 values a second, by Praat from 75 to 600 Hz"
FIGURES = {
    "duration": ClipFigure("s", 2, "length of the recording", lambda clip, sound: sound.seconds),
    "speaking rate": ClipFigure(
        "symbols/s",
        1,
        "symbols of the cleaned text by seconds of sound, the silence at both ends left out",
        lambda clip, sound: clip.speaking_rate,
    ),
    "leading silence": ClipFigure("s", 2, "silence before the first sound", lambda clip, sound: sound.leading),
    "trailing silence": ClipFigure("s", 2, "silence after the last sound", lambda clip, sound: sound.trailing),
    "longest pause": ClipFigure("s", 2, "longest silence between two sounds", lambda clip, sound: sound.pause),
    "speech level": ClipFigure(
        "dBFS", 1, "root mean square of the speech, in dB relative to full scale", lambda clip, sound: sound.level
    ),
    "peak": ClipFigure(
        "dBFS", 1, "largest absolute sample, in dB relative to full scale", lambda clip, sound: sound.peak
    ),
    "noise": ClipFigure(
        "dBFS",
        1,
        "level of the quietest twentieth of the recording, in dB relative to full scale",
        lambda clip, sound: sound.noise,
    ),
    "clipped samples": ClipFigure(
        "%",
        4,
        "share of the samples that stand at the clip's own extreme, three in a row at least",
        lambda clip, sound: 100 * sound.clipping,
    ),
    "DC offset": ClipFigure("of full scale", 5, "mean of the samples", lambda clip, sound: sound.dc_offset),
    "pitch, 5 %": ClipFigure("Hz", 0, f"5th percentile {_PITCH}", lambda clip, sound: _pitch(sound, 0.05)),
    "pitch, median": ClipFigure("Hz", 0, f"median {_PITCH}", lambda clip, sound: _pitch(sound, 0.5)),
    "pitch, 95 %": ClipFigure("Hz", 0, f"95th percentile {_PITCH}", lambda clip, sound: _pitch(sound, 0.95)),
    "voiced": ClipFigure(
        "%", 0, "share of the recording in which Praat finds a pitch", lambda clip, sound: 100 * sound.voiced
    ),
}


def _pitch(sound: Sound, part: float) -> float | None:
    return quantile(sound.pitch_counts, part)


@dataclass(frozen=True)
class Distribution:
    """The distribution of one measured value over the clips."""

    minimum: float
    low: float  # 5th percentile
    median: float
    high: float  # 95th percentile
    maximum: float


@dataclass(frozen=True)
class SpeakerSummary:
    """One speaker's share."""

    name: str  # "" where the lists have no speakers
    n_clips: int
    seconds: float
    speaking_rate: float | None  # median, symbols/s
    level: float | None  # median, dBFS
    pitch_low: float | None  # Hz, 5th percentile over time
    pitch_median: float | None  # Hz
    pitch_high: float | None  # Hz, 95th percentile
    pitch_mean: float | None  # Hz
    pitch_std: float | None  # Hz


@dataclass(frozen=True)
class Character:
    """A character that the symbol set lacks."""

    symbol: str
    count: int
    n_clips: int
    places: tuple[str, ...]  # the first lines


@dataclass(frozen=True)
class DataReport:
    """Everything that the report says."""

    dataset: Path
    lists: tuple[Path, ...]
    audio: AudioConfig
    text: TextConfig
    limits: Limits
    clips: tuple[Clip, ...]
    findings: tuple[Finding, ...]

    @cached_property
    def speakers(self) -> tuple[SpeakerSummary, ...]:
        """Each speaker of the lists, by name."""
        groups = defaultdict(list)
        for clip in self.clips:
            groups[clip.utterance.speaker or ""].append(clip)
        return tuple(_summarize(name, groups[name]) for name in sorted(groups))

    @cached_property
    def distributions(self) -> dict[str, Distribution]:
        """FIGURES over the clips."""
        values = defaultdict(list)
        for clip, sound in measured(self.clips):
            for name, value in figures(clip, sound).items():
                values[name].append(value)
        return {
            name: Distribution(*map(float, np.percentile(values[name], (0, 5, 50, 95, 100))))
            for name in FIGURES
            if name in values
        }

    @cached_property
    def extremes(self) -> dict[str, tuple[Clip, Clip]]:
        """For each of FIGURES the clips with the smallest and the largest value, the first of equal ones."""
        found = {}
        values = [(clip, figures(clip, sound)) for clip, sound in measured(self.clips)]
        for name in self.distributions:
            known = [(one[name], clip) for clip, one in values if name in one]
            ends = (min(known, key=lambda pair: pair[0]), max(known, key=lambda pair: pair[0]))
            found[name] = (ends[0][1], ends[1][1])
        return found

    @cached_property
    def formats(self) -> dict[str, int]:
        """What the files are ("WAV PCM_16, 22050 Hz, 1 channel") -> clips, the most frequent first."""
        counts: Counter[str] = Counter()
        for _, sound in measured(self.clips):
            channels = f"{sound.n_channels} channel{'s' if sound.n_channels != 1 else ''}"
            counts[f"{sound.container} {sound.subtype}, {sound.sampling_rate} Hz, {channels}"] += 1
        return dict(counts.most_common())

    @property
    def unknown(self) -> tuple[Character, ...]:
        """Characters of cleaned transcripts that the symbol set lacks."""
        return _characters((clip.utterance.where, clip.transcript.unknown) for clip in self.clips)

    @property
    def rewritten(self) -> tuple[Character, ...]:
        """Characters that the symbol set lacks and the cleaners rewrite."""
        return _characters((clip.utterance.where, clip.transcript.rewritten) for clip in self.clips)

    @property
    def notes(self) -> tuple[str, ...]:
        """What concerns the corpus, not single clips."""
        return tuple(_notes(self))

    @property
    def seconds(self) -> float:
        """Total duration of the recordings that can be read."""
        return sum(sound.seconds for _, sound in measured(self.clips))

    @property
    def n_suspects(self) -> int:
        """Clips with a finding."""
        return len({finding.index for finding in self.findings})

    def by_kind(self) -> dict[str, list[Finding]]:
        """Kinds that were found, in order."""
        groups: dict[str, list[Finding]] = defaultdict(list)
        for finding in self.findings:
            groups[finding.kind].append(finding)
        return groups


def figures(clip: Clip, sound: Sound) -> dict[str, float]:
    """FIGURES of one clip, those that it has."""
    values = {name: figure.value(clip, sound) for name, figure in FIGURES.items()}
    return {name: value for name, value in values.items() if value is not None}


def _summarize(name: str, clips: Sequence[Clip]) -> SpeakerSummary:
    sounds = [sound for _, sound in measured(clips)]
    rates = [rate for clip in clips if (rate := clip.speaking_rate) is not None]
    counts = np.sum([sound.pitch_counts for sound in sounds], axis=0) if sounds else np.zeros(len(PITCH_EDGES) - 1)
    mean, std, median = None, None, quantile(counts, 0.5)
    if counts.sum():
        try:
            over_time = statistics(sound.pitch for sound in sounds)
            mean, std = over_time.mean, over_time.std
        except InputError:  # it does not vary
            mean, std = median, 0.0
    return SpeakerSummary(
        name=name,
        n_clips=len(clips),
        seconds=sum(sound.seconds for sound in sounds),
        speaking_rate=float(np.median(rates)) if rates else None,
        level=float(np.median([sound.level for sound in sounds])) if sounds else None,
        pitch_low=quantile(counts, 0.05),
        pitch_median=median,
        pitch_high=quantile(counts, 0.95),
        pitch_mean=mean,
        pitch_std=std,
    )


def _characters(found: Iterable[tuple[str, dict[str, int]]]) -> tuple[Character, ...]:
    """Lines and the characters found in them -> each character, the most frequent first."""
    counts: Counter[str] = Counter()
    places = defaultdict(list)
    for where, characters in found:
        counts.update(characters)
        for symbol in characters:
            places[symbol].append(where)
    return tuple(
        Character(symbol, count, len(places[symbol]), tuple(places[symbol][:PLACES]))
        for symbol, count in counts.most_common()
    )


def _notes(report: DataReport) -> Iterator[str]:
    rate, usual = report.audio.sampling_rate, AudioConfig().sampling_rate
    if rate != usual:
        yield f"pass --sampling-rate {rate} to the extraction too; its default is {usual}"
    if len(report.clips) < SMALLEST_GROUP:
        yield f"fewer than {SMALLEST_GROUP} clips: too few to say which rate, level or pitch is odd"
    few = [f"{speaker.name} ({speaker.n_clips})" for speaker in report.speakers if speaker.n_clips < FEW_CLIPS]
    if few and len(report.speakers) > 1:
        yield f"speakers of fewer than {FEW_CLIPS} clips: {', '.join(few)}"
    by_list = defaultdict(set)
    for clip in report.clips:
        by_list[clip.utterance.list_index].add(clip.utterance.speaker or "none")
    for index, path in enumerate(report.lists[1:], start=1):
        if others := sorted(by_list[index] - by_list[0]):
            yield f"{path} has speakers that {report.lists[0]} lacks: {', '.join(others)}"


def to_json(report: DataReport) -> dict[str, Any]:
    """Every figure in plain types."""
    by_kind = report.by_kind()
    return {
        "dataset": str(report.dataset),
        "lists": [str(path) for path in report.lists],
        "audio": to_plain(report.audio),
        "text": to_plain(report.text),
        "limits": asdict(report.limits),
        "n_clips": len(report.clips),
        "n_clips_with_findings": report.n_suspects,
        "hours": report.seconds / 3600,
        "distributions": {
            name: {"unit": FIGURES[name].unit, **asdict(values)} for name, values in report.distributions.items()
        },
        "speakers": [asdict(speaker) for speaker in report.speakers],
        "formats": report.formats,
        "unknown_symbols": [asdict(character) for character in report.unknown],
        "rewritten_characters": [asdict(character) for character in report.rewritten],
        "notes": list(report.notes),
        "kinds": {kind: {**asdict(KINDS[kind]), "count": len(found)} for kind, found in by_kind.items()},
        "findings": [{"level": finding.level, **asdict(finding)} for finding in report.findings],
        "clips": [_clip_to_plain(clip) for clip in report.clips],
    }


def _clip_to_plain(clip: Clip) -> dict[str, Any]:
    item = clip.utterance
    plain: dict[str, Any] = {"where": item.where, "wav": item.wav, "speaker": item.speaker}
    plain |= {"n_symbols": clip.transcript.n_tokens, "cleaned_text": clip.transcript.cleaned}
    if (sound := clip.sound) is not None:
        names = ("sampling_rate", "n_channels", "container", "subtype", "n_samples")
        plain |= {name: getattr(sound, name) for name in names} | {"samples_blake2b": sound.digest}
        plain |= figures(clip, sound)
    return plain
