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

# name -> unit, how many digits after the point it is shown with, and its value for a clip; None: the clip has none
FIGURES: dict[str, tuple[str, int, Callable[[Clip, Sound], float | None]]] = {
    "duration": ("s", 2, lambda clip, sound: sound.seconds),
    "speaking rate": ("symbols/s", 1, lambda clip, sound: clip.speaking_rate),
    "leading silence": ("s", 2, lambda clip, sound: sound.leading),
    "trailing silence": ("s", 2, lambda clip, sound: sound.trailing),
    "longest pause": ("s", 2, lambda clip, sound: sound.pause),
    "speech level": ("dBFS", 1, lambda clip, sound: sound.level),
    "peak": ("dBFS", 1, lambda clip, sound: sound.peak),
    "noise": ("dBFS", 1, lambda clip, sound: sound.noise),
    "clipped samples": ("%", 4, lambda clip, sound: 100 * sound.clipping),
    "DC offset": ("of full scale", 5, lambda clip, sound: sound.dc_offset),
    "pitch, 5 %": ("Hz", 0, lambda clip, sound: sound.pitch_below(0.05)),
    "pitch, median": ("Hz", 0, lambda clip, sound: sound.pitch_below(0.5)),
    "pitch, 95 %": ("Hz", 0, lambda clip, sound: sound.pitch_below(0.95)),
    "voiced": ("%", 0, lambda clip, sound: 100 * sound.voiced),
}


@dataclass(frozen=True)
class Distribution:
    """Of one figure over the clips."""

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
        """Of all recordings that can be read."""
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
    values = {name: value(clip, sound) for name, (_, _, value) in FIGURES.items()}
    return {name: value for name, value in values.items() if value is not None}


def _summarize(name: str, clips: Sequence[Clip]) -> SpeakerSummary:
    sounds = [sound for _, sound in measured(clips)]
    rates = [rate for clip in clips if (rate := clip.speaking_rate) is not None]
    counts = np.sum([sound.pitch_counts for sound in sounds], axis=0) if sounds else np.zeros(len(PITCH_EDGES) - 1)
    low, median, high = (quantile(counts, part) for part in (0.05, 0.5, 0.95))
    mean = std = None
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
        pitch_low=low,
        pitch_median=median,
        pitch_high=high,
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
            name: {"unit": FIGURES[name][0], **asdict(values)} for name, values in report.distributions.items()
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
