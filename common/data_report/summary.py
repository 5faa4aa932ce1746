"""What a corpus is like: distributions, speakers, file formats, characters, and the JSON of all figures."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from common.config import AudioConfig, to_plain
from common.data_report.clip import MEASURES, Clip
from common.data_report.findings import KINDS, REFUSED, SMALLEST_GROUP, Finding
from common.data_report.options import Limits
from common.importing.options import MENDED_BY_IMPORT, import_command
from common.text.config import TextConfig

PLACES = 5  # lines named for a character
FEW_CLIPS = 20  # of a speaker: too few to learn a voice from
PERCENTILES = {"minimum": 0, "low": 5, "median": 50, "high": 95, "maximum": 100}  # of a figure's distribution


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

    @property
    def headline(self) -> str:
        """The report in a line."""
        n_found = len({finding.index for finding in self.findings})
        n_refused = len({finding.index for finding in self.findings if finding.level == REFUSED})
        found = f"{n_found} with findings, {n_refused} of them to be refused" if n_found else "all clean"
        return f"{len(self.clips)} clips, {hours(sum(values_of(self.clips, 'duration')))} of speech: {found}"

    @cached_property
    def speakers(self) -> dict[str, dict[str, Any]]:
        """Figures of each speaker by name, "" where the lists have no speakers."""
        groups = defaultdict(list)
        for clip in self.clips:
            groups[clip.utterance.speaker or ""].append(clip)
        return {name: _speaker_figures(groups[name]) for name in sorted(groups)}

    @cached_property
    def distributions(self) -> dict[str, dict[str, float]]:
        """PERCENTILES over the clips of each of MEASURES that a clip has."""
        found = {name: values_of(self.clips, name) for name in MEASURES}
        return {
            name: dict(zip(PERCENTILES, map(float, np.percentile(values, list(PERCENTILES.values())))))
            for name, values in found.items()
            if values
        }

    @cached_property
    def unknown_characters(self) -> list[dict[str, Any]]:
        """Characters of transcripts that the symbol set lacks, the most frequent first, and their first lines."""
        counts: Counter[str] = Counter()
        places = defaultdict(list)
        for clip in self.clips:
            counts.update(clip.unknown)
            for symbol in clip.unknown:
                places[symbol].append(clip.utterance.where)
        return [
            {"symbol": symbol, "count": count, "n_clips": len(places[symbol]), "places": places[symbol][:PLACES]}
            for symbol, count in counts.most_common()
        ]

    def notes(self) -> Iterator[str]:
        """What concerns the corpus, not single clips."""
        rate, usual = self.audio.sampling_rate, AudioConfig().sampling_rate
        if rate != usual:
            yield f"pass --sampling-rate {rate} to the extraction too; for {usual} Hz {import_command(self.dataset)}"
        if len(self.clips) < SMALLEST_GROUP:
            yield f"fewer than {SMALLEST_GROUP} clips: too few to say which rate, level or pitch is odd"
        few = [f"{name} ({one['n_clips']})" for name, one in self.speakers.items() if one["n_clips"] < FEW_CLIPS]
        if few and len(self.speakers) > 1:
            yield f"speakers of fewer than {FEW_CLIPS} clips: {', '.join(few)}"
        if mended := [KINDS[kind].title for kind in self.by_kind() if kind in MENDED_BY_IMPORT]:
            yield f"{', '.join(mended)}: mended by {import_command(self.dataset)}"
        by_list = defaultdict(set)
        for clip in self.clips:
            by_list[clip.utterance.list_index].add(clip.utterance.speaker or "none")
        for index, path in enumerate(self.lists[1:], start=1):
            if others := sorted(by_list[index] - by_list[0]):
                yield f"{path} has speakers that {self.lists[0]} lacks: {', '.join(others)}"

    def by_kind(self) -> dict[str, list[Finding]]:
        """Findings by their kind, in the order of KINDS."""
        return {kind: found for kind in KINDS if (found := [one for one in self.findings if one.kind == kind])}


def hours(seconds: float) -> str:
    """A duration as 1 h 02 min, or 3 min 04 s."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min {rest:02d} s"


def values_of(clips: Iterable[Clip], name: str) -> list[float]:
    """One figure of the clips that have it."""
    return [clip.figures[name] for clip in clips if name in clip.figures]


def _speaker_figures(clips: Sequence[Clip]) -> dict[str, Any]:
    pitch = np.concatenate([np.zeros(0), *(clip.sound.pitch for clip in clips if clip.sound is not None)])
    figures: dict[str, Any] = {"n_clips": len(clips), "seconds": sum(values_of(clips, "duration"))}
    for key, name in (("speaking_rate", "speaking rate"), ("level", "speech level")):
        figures[key] = float(np.median(values)) if (values := values_of(clips, name)) else None
    names = ("pitch_low", "pitch_median", "pitch_high", "pitch_mean", "pitch_std")
    of_pitch = [*np.percentile(pitch, (5, 50, 95)).tolist(), pitch.mean(), pitch.std()] if len(pitch) else [None] * 5
    return figures | dict(zip(names, of_pitch))


def to_json(report: DataReport) -> dict[str, Any]:
    """Every figure in plain types."""
    return {
        "dataset": str(report.dataset),
        "lists": [str(path) for path in report.lists],
        "audio": to_plain(report.audio),
        "text": to_plain(report.text),
        "limits": {name.removeprefix("report_"): limit for name, limit in asdict(report.limits).items()},
        "n_clips": len(report.clips),
        "n_clips_with_findings": len({finding.index for finding in report.findings}),
        "hours": sum(values_of(report.clips, "duration")) / 3600,
        "distributions": {name: {"unit": MEASURES[name].unit, **one} for name, one in report.distributions.items()},
        "speakers": [{"name": name, **figures} for name, figures in report.speakers.items()],
        "unknown_symbols": report.unknown_characters,
        "notes": list(report.notes()),
        "kinds": {kind: {**asdict(KINDS[kind]), "count": len(found)} for kind, found in report.by_kind().items()},
        "findings": [{"level": finding.level, **asdict(finding)} for finding in report.findings],
        "clips": [_clip_to_plain(clip) for clip in report.clips],
    }


def _clip_to_plain(clip: Clip) -> dict[str, Any]:
    item, sound = clip.utterance, {} if clip.sound is None else vars(clip.sound)
    plain: dict[str, Any] = {"where": item.where, "wav": item.wav, "speaker": item.speaker, "n_symbols": clip.n_tokens}
    facts = {name: value for name, value in sound.items() if name != "pitch"}
    return plain | {"cleaned_text": clip.cleaned} | facts | clip.figures
