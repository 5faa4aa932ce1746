"""The report's charts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from common.data_report.clip import PITCH_EDGES, QUIETEST, measured
from common.data_report.summary import DataReport, SpeakerSummary
from common.pages.charts import CHART_STYLE, data_url, to_svg

SIZE = (4.7, 3.0)  # inches
MOST_BINS = 40
LEAST_RANGE = 1e-3  # of an axis: equal values are one bar
MOST_CURVES = 8  # speakers with a curve of their own; more are ranges
MOST_RANGES = 40  # speakers with a range, those with the most clips
BLUE, ORANGE, GREEN, RED, GRAY = (f"tab:{name}" for name in ("blue", "orange", "green", "red", "gray"))


@dataclass(frozen=True)
class Chart:
    """One picture."""

    title: str
    caption: str
    address: str  # a data URL of its SVG


def draw(report: DataReport) -> list[Chart]:
    """The charts of ``report``."""
    charts = []
    for title, caption, paint in _CHARTS:
        with matplotlib.rc_context(CHART_STYLE):
            figure = Figure(figsize=SIZE, layout="constrained")
            axis = figure.subplots()
            axis.grid()
            painted = paint(axis, report)
        if painted:
            charts.append(Chart(title, caption, data_url(to_svg(figure))))
    return charts


def _histogram(
    axis: Axes,
    rows: Sequence[tuple[str, Sequence[float], str]],
    *,
    xlabel: str,
    limits: Sequence[tuple[float, str]] = (),
) -> bool:
    """Histograms of (label, values, color) over the same bins, and dashed lines at ``limits`` (value, label)."""
    filled = [row for row in rows if len(row[1])]
    if not filled:
        return False
    every = np.concatenate([values for _, values, _ in filled])
    low, high = float(every.min()), float(every.max())
    margin = max(0.0, LEAST_RANGE * max(1.0, abs(high)) - (high - low))
    n_bins = MOST_BINS if len(filled) > 1 else int(np.clip(2 * np.sqrt(len(every)), 10, MOST_BINS))
    bins = np.linspace(low - margin, high + margin, n_bins + 1).tolist()
    for label, values, color in filled:
        opacity = 0.3 if len(filled) > 1 else 0.85
        axis.hist(values, bins, color=color, label=label, histtype="stepfilled", alpha=opacity)
        if len(filled) > 1:
            axis.hist(values, bins, color=color, histtype="step", linewidth=1.4)
    axis.set_xlabel(xlabel)
    axis.set_ylabel("clips")
    axis.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
    axis.set_ylim(bottom=0)
    for value, label in limits:
        left, right = axis.get_xlim()
        if left <= value <= right:
            axis.axvline(value, color=RED, linewidth=1.2, linestyle="--", label=label)
    if len(rows) > 1:
        _legend(axis)
    return True


def _legend(axis: Axes) -> None:
    """Names above the axes, where they hide nothing."""
    axis.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0), columnspacing=1.2, handlelength=1.4)


def _durations(axis: Axes, report: DataReport) -> bool:
    values = [sound.seconds for _, sound in measured(report.clips)]
    limits = [(report.limits.max_seconds, ""), (report.limits.min_seconds, "")]
    return _histogram(axis, [("clips", values, BLUE)], xlabel="duration (s)", limits=limits)


def _text_and_speech(axis: Axes, report: DataReport) -> bool:
    clips = [(clip, sound) for clip, sound in measured(report.clips) if clip.transcript.n_tokens]
    if not clips:
        return False
    odd = {finding.index for finding in report.findings if finding.kind in ("speaking_rate", "too_few_frames")}
    for label, color, size, is_odd in (("usual", BLUE, 10, False), ("odd rate, or too few frames", RED, 28, True)):
        group = [(clip, sound) for clip, sound in clips if (clip.utterance.index in odd) == is_odd]
        if group:
            x = [clip.transcript.n_tokens for clip, _ in group]
            y = [sound.speech_seconds for _, sound in group]
            axis.scatter(x, y, s=size, color=color, alpha=0.6 if not is_odd else 0.9, linewidths=0, label=label)
    axis.set_xlabel("symbols")
    axis.set_ylabel("speech (s)")
    axis.set_xlim(left=0)
    axis.set_ylim(bottom=0)
    if odd:
        _legend(axis)
    return True


def _rates(axis: Axes, report: DataReport) -> bool:
    values = [rate for clip in report.clips if (rate := clip.speaking_rate) is not None]
    return _histogram(axis, [("clips", values, BLUE)], xlabel="speaking rate (symbols/s)")


def _silences(axis: Axes, report: DataReport) -> bool:
    sounds = [sound for _, sound in measured(report.clips)]
    rows = [
        ("at the start", [sound.leading for sound in sounds], BLUE),
        ("at the end", [sound.trailing for sound in sounds], ORANGE),
        ("longest pause", [sound.pause for sound in sounds], GREEN),
    ]
    return _histogram(axis, rows, xlabel="silence (s)", limits=[(report.limits.max_silence, "limit at the ends")])


def _levels(axis: Axes, report: DataReport) -> bool:
    sounds = [sound for _, sound in measured(report.clips)]
    rows = [
        ("noise", [sound.noise for sound in sounds if sound.noise > QUIETEST], GRAY),
        ("speech", [sound.level for sound in sounds if sound.level > QUIETEST], BLUE),
        ("peak", [sound.peak for sound in sounds if sound.peak > QUIETEST], ORANGE),
    ]
    limits = [(report.limits.min_level, "least level of speech")]
    return _histogram(axis, rows, xlabel="level (dB relative to full scale)", limits=limits)


def _pitch(axis: Axes, report: DataReport) -> bool:
    voices = [speaker for speaker in report.speakers if speaker.pitch_median is not None]
    voices = sorted(voices, key=lambda speaker: -speaker.n_clips)[:MOST_RANGES]
    if not voices:
        return False
    if len(voices) <= MOST_CURVES:
        _pitch_curves(axis, report, voices)
    else:
        _pitch_ranges(axis, voices)
    axis.set_xscale("log")
    ticks = [80, 100, 150, 200, 300, 400, 600]
    axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axis.minorticks_off()
    axis.set_xlabel("pitch (Hz)")
    return True


def _pitch_curves(axis: Axes, report: DataReport, voices: Sequence[SpeakerSummary]) -> None:
    middles = np.sqrt(PITCH_EDGES[1:] * PITCH_EDGES[:-1])
    for voice in voices:
        sounds = [sound for clip, sound in measured(report.clips) if (clip.utterance.speaker or "") == voice.name]
        counts = np.sum([sound.pitch_counts for sound in sounds], axis=0)
        axis.plot(middles, 100 * counts / counts.sum(), linewidth=1.6, label=voice.name or "all clips")
        axis.fill_between(middles, 0, 100 * counts / counts.sum(), alpha=0.12)
    axis.set_ylabel("% of voiced time")
    axis.set_ylim(bottom=0)
    if len(voices) > 1:
        _legend(axis)


def _pitch_ranges(axis: Axes, voices: Sequence[SpeakerSummary]) -> None:
    ranges = [(voice.pitch_median, voice.pitch_low, voice.pitch_high, voice.name) for voice in voices]
    medians, lows, highs, names = zip(*sorted(ranges, key=lambda item: item[0] or 0))
    rows = np.arange(len(voices))
    axis.hlines(rows, lows, highs, color=BLUE)
    axis.plot(medians, rows, "o", color=BLUE, markersize=3)
    axis.set_yticks(rows, names, fontsize=5)


_CHARTS: tuple[tuple[str, str, Callable[[Axes, DataReport], bool]], ...] = (
    ("Durations", "how long the recordings are; dashed: a limit, where one is in range", _durations),
    ("Text and speech", "each point is a clip, its silence at both ends left out", _text_and_speech),
    ("Speaking rate", "symbols of the cleaned text a second of speech", _rates),
    ("Silence", "at both ends, and the longest pause between", _silences),
    ("Levels", "peak, speech (root mean square) and the quietest twentieth of each clip", _levels),
    ("Pitch", "Praat, 75 to 600 Hz, over voiced time; of many speakers 5th to 95th percentile and median", _pitch),
)
