"""Summarize a corpus: distributions, speakers, clips and findings, as plain types for the JSON and the page."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from common.config import AudioConfig
from common.data_report.clip import MEASURES, Clip
from common.data_report.findings import KINDS, REFUSED, Finding
from common.importing.options import MENDED_BY_IMPORT, import_command
from common.pages.tables import read_table

FEW_CLIPS = 20  # of a speaker; with fewer, a voice can't be learned well
PERCENTILES = {"minimum": 0, "low": 5, "median": 50, "high": 95, "maximum": 100}  # of a distribution
OF_SPEAKERS = read_table("data_report/speakers.tsv")  # figures for each speaker, mostly medians over the clips


def summarize(
    clips: Sequence[Clip], findings: Sequence[Finding], *, dataset: Path, lists: Sequence[Path], audio: AudioConfig
) -> dict[str, Any]:
    """Return the contents of the report on a corpus; ``audio`` is the expected format."""
    counts = Counter(finding.kind for finding in findings)
    kinds = {kind: {**about, "count": counts[kind]} for kind, about in KINDS.items() if counts[kind]}
    speakers, notes = _speakers(clips), list[str]()
    rate, usual = audio.sampling_rate, AudioConfig().sampling_rate
    if rate != usual:
        notes.append(f"also extract with --sampling-rate {rate}, or convert to {usual} Hz: {import_command(dataset)}")
    few = [f"{one['name']} ({one['n_clips']})" for one in speakers if one["n_clips"] < FEW_CLIPS]
    if few and len(speakers) > 1:
        notes.append(f"speakers with fewer than {FEW_CLIPS} clips: {', '.join(few)}")
    if mended := [KINDS[kind]["title"] for kind in kinds if kind in MENDED_BY_IMPORT]:
        notes.append(f"{', '.join(mended)}: to fix, run {import_command(dataset)}")
    first, *others = (
        {clip.utterance.speaker for clip in clips if clip.utterance.list_index == n} for n in range(len(lists))
    )
    for path, own in zip(lists[1:], others):
        if unknown := sorted(map(str, own - first)):
            notes.append(f"{path} has speakers that {lists[0]} lacks: {', '.join(unknown)}")
    all_values = {name: values_of(clips, name) for name in MEASURES}
    seconds = sum(all_values["duration"])
    n_found = len({one.clip.utterance.index for one in findings})
    n_refused = len({one.clip.utterance.index for one in findings if one.level == REFUSED})
    found = f"{n_found} with findings, {n_refused} of them refused" if n_found else "all clean"
    return {
        "headline": f"{len(clips)} clips, {timedelta(seconds=round(seconds))} of speech: {found}",
        "n_clips": len(clips),
        "n_clips_with_findings": n_found,
        "hours": seconds / 3600,
        "distributions": {
            name: {"unit": MEASURES[name].unit}
            | dict(zip(PERCENTILES, np.percentile(values, [*PERCENTILES.values()]).tolist()))
            for name, values in all_values.items()
            if values
        },
        "speakers": speakers,
        "notes": notes,
        "kinds": kinds,
        "findings": [
            {"level": one.level, "kind": one.kind, "index": one.clip.utterance.index}
            | dict(zip(("where", "wav", "reason"), one.row))
            for one in findings
        ],
        "clips": [_to_plain(clip) for clip in clips],
    }


def _speakers(clips: Sequence[Clip]) -> list[dict[str, Any]]:
    """Return the figures of each speaker; the name is "" if the lists have no speakers."""
    rows = []
    for name in sorted({clip.utterance.speaker or "" for clip in clips}):
        own = [clip for clip in clips if (clip.utterance.speaker or "") == name]
        row = {"name": name, "n_clips": len(own), "seconds": sum(values_of(own, "duration"))}
        values = {about["key"]: values_of(own, about["figure"]) for about in OF_SPEAKERS if about["figure"]}
        rows.append(row | {key: float(np.median(one)) if one else None for key, one in values.items()})
    return rows


def values_of(clips: Iterable[Clip], name: str) -> list[float]:
    """Return a figure's values over the clips that have it."""
    return [clip.figures[name] for clip in clips if name in clip.figures]


def _to_plain(clip: Clip) -> dict[str, Any]:
    item, sound = clip.utterance, {} if clip.sound is None else vars(clip.sound)
    plain: dict[str, Any] = {"where": item.where, "wav": item.wav, "speaker": item.speaker, "n_symbols": clip.n_tokens}
    return plain | {"cleaned_text": clip.cleaned} | sound | clip.figures
