"""What a corpus is like: distributions, speakers, file formats, characters, and the JSON of all figures."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.audio.pitch import statistics
from common.config import AudioConfig, TextConfig, to_plain
from common.data_report.arguments import Limits
from common.data_report.clip import PITCH_EDGES, Clip, measured, quantile
from common.data_report.findings import KINDS, SMALLEST_GROUP, Finding
from common.errors import InputError

PLACES = 5  # lines named for a character
FEW_CLIPS = 20  # of a speaker: too few to learn a voice from

# name -> unit, and how many digits after the point it is shown with
FIGURES = {
    "duration": ("s", 2),
    "speaking rate": ("symbols/s", 1),
    "leading silence": ("s", 2),
    "trailing silence": ("s", 2),
    "longest pause": ("s", 2),
    "speech level": ("dBFS", 1),
    "peak": ("dBFS", 1),
    "noise": ("dBFS", 1),
    "clipped samples": ("%", 4),
    "DC offset": ("of full scale", 5),
    "pitch, 5 %": ("Hz", 0),
    "pitch, median": ("Hz", 0),
    "pitch, 95 %": ("Hz", 0),
    "voiced": ("%", 0),
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
    speakers: tuple[SpeakerSummary, ...]
    distributions: dict[str, Distribution]
    formats: tuple[tuple[str, int], ...]  # "WAV PCM_16, 22050 Hz, 1 channel" -> clips
    unknown: tuple[Character, ...]
    rewritten: tuple[Character, ...]
    notes: tuple[str, ...]

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


def figures(clip: Clip) -> dict[str, float]:
    """FIGURES of one clip, those that it has."""
    if (sound := clip.sound) is None:
        return {}
    values = {
        "duration": sound.seconds,
        "leading silence": sound.leading,
        "trailing silence": sound.trailing,
        "longest pause": sound.pause,
        "speech level": sound.level,
        "peak": sound.peak,
        "noise": sound.noise,
        "clipped samples": 100 * sound.clipping,
        "DC offset": sound.dc_offset,
        "voiced": 100 * sound.voiced,
    }
    if (rate := clip.speaking_rate) is not None:
        values["speaking rate"] = rate
    for name, part in (("5 %", 0.05), ("median", 0.5), ("95 %", 0.95)):
        if (pitch := sound.pitch_below(part)) is not None:
            values[f"pitch, {name}"] = pitch
    return values


def distributions(clips: Iterable[Clip]) -> dict[str, Distribution]:
    """FIGURES over the clips."""
    values = defaultdict(list)
    for clip in clips:
        for name, value in figures(clip).items():
            values[name].append(value)
    return {
        name: Distribution(*map(float, np.percentile(values[name], (0, 5, 50, 95, 100))))
        for name in FIGURES
        if name in values
    }


def summarize_speakers(clips: Iterable[Clip]) -> tuple[SpeakerSummary, ...]:
    """Each speaker of the lists, by name."""
    groups = defaultdict(list)
    for clip in clips:
        groups[clip.utterance.speaker or ""].append(clip)
    return tuple(_summarize(name, groups[name]) for name in sorted(groups))


def _summarize(name: str, clips: Sequence[Clip]) -> SpeakerSummary:
    sounds = [sound for _, sound in measured(clips)]
    rates = [rate for clip in clips if (rate := clip.speaking_rate) is not None]
    counts = np.sum([sound.pitch_counts for sound in sounds], axis=0) if sounds else np.zeros(len(PITCH_EDGES) - 1)
    low, median, high = (quantile(counts, part) for part in (0.05, 0.5, 0.95))
    mean, std = None, None
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


def formats(clips: Iterable[Clip]) -> tuple[tuple[str, int], ...]:
    """What the files are, the most frequent first."""
    counts: Counter[str] = Counter()
    for _, sound in measured(clips):
        channels = f"{sound.n_channels} channel{'s' if sound.n_channels != 1 else ''}"
        counts[f"{sound.container} {sound.subtype}, {sound.sampling_rate} Hz, {channels}"] += 1
    return tuple(counts.most_common())


def characters(clips: Iterable[Clip], *, before_cleaning: bool) -> tuple[Character, ...]:
    """Characters that the symbol set lacks, the most frequent first."""
    counts: Counter[str] = Counter()
    places = defaultdict(list)
    for clip in clips:
        found = clip.transcript.rewritten if before_cleaning else clip.transcript.unknown
        counts.update(found)
        for symbol in found:
            places[symbol].append(clip.utterance.where)
    return tuple(
        Character(symbol, count, len(places[symbol]), tuple(places[symbol][:PLACES]))
        for symbol, count in counts.most_common()
    )


def notes(
    clips: Sequence[Clip], speakers: Sequence[SpeakerSummary], audio: AudioConfig, lists: Sequence[Path]
) -> tuple[str, ...]:
    """What concerns the corpus, not single clips."""
    lines = []
    if audio.sampling_rate != AudioConfig().sampling_rate:
        rate = audio.sampling_rate
        lines.append(f"pass --sampling-rate {rate} to the extraction too; its default is {AudioConfig().sampling_rate}")
    if len(clips) < SMALLEST_GROUP:
        lines.append(f"fewer than {SMALLEST_GROUP} clips: too few to tell which rate, level or pitch is odd")
    if len(speakers) > 1:
        few = [f"{speaker.name} ({speaker.n_clips})" for speaker in speakers if speaker.n_clips < FEW_CLIPS]
        if few:
            lines.append(f"speakers of fewer than {FEW_CLIPS} clips: {', '.join(few)}")
    first = {clip.utterance.speaker for clip in clips if clip.utterance.list_index == 0}
    for index, path in enumerate(lists[1:], start=1):
        others = {clip.utterance.speaker for clip in clips if clip.utterance.list_index == index} - first
        if others:
            names = ", ".join(sorted(name or "none" for name in others))
            lines.append(f"{path} has speakers that {lists[0]} lacks: {names}")
    return tuple(lines)


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
        "formats": dict(report.formats),
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
    if clip.sound is not None:
        names = ("sampling_rate", "n_channels", "container", "subtype", "n_samples")
        plain |= {name: getattr(clip.sound, name) for name in names} | {"samples_blake2b": clip.sound.digest}
    return plain | figures(clip)
