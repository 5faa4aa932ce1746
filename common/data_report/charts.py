"""The report's charts."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from common.audio.pitch import PITCH_CEILING, PITCH_FLOOR
from common.data_report.clip import QUIETEST
from common.data_report.summary import DataReport, values_of
from common.pages.charts import CHART_STYLE, data_url, scale_pitch, to_svg

PITCH_EDGES = np.geomspace(PITCH_FLOOR, PITCH_CEILING, 73)  # Hz, half a semitone apart
SIZE = (4.7, 3.0)  # inches
MOST_BINS = 40
LEAST_RANGE = 1e-3  # of an axis: equal values are one bar
MOST_CURVES = 8  # speakers with a curve of their own; more are ranges
MOST_RANGES = 40  # speakers with a range, those with the most clips
BLUE, ORANGE, GREEN, RED, GRAY = (f"tab:{name}" for name in ("blue", "orange", "green", "red", "gray"))


@dataclass(frozen=True)
class Histogram:
    """Which figures of the clips one chart shows."""

    xlabel: str
    figures: dict[str, str]  # label of the legend -> name of the figure
    colors: tuple[str, ...] = (BLUE, ORANGE, GREEN)
    limits: tuple[str, ...] = ()  # fields of `Limits`, which are dashed lines


@dataclass(frozen=True)
class Chart:
    """One picture."""

    title: str
    caption: str
    address: str  # a data URL of its SVG


def draw(report: DataReport) -> list[Chart]:
    """The charts of ``report``, those that have something to show."""
    charts = []
    for title, caption, content in _CHARTS:
        with matplotlib.rc_context(CHART_STYLE):
            figure = Figure(figsize=SIZE, layout="constrained")
            axis = figure.subplots()
            axis.grid()
            if isinstance(content, Histogram):
                _draw_histogram(axis, report, content)
            else:
                content(axis, report)
            if axis.has_data():
                charts.append(Chart(title, caption, data_url(to_svg(figure))))
    return charts


def _draw_histogram(axis: Axes, report: DataReport, chart: Histogram) -> None:
    """Histograms over the same bins, and dashed lines at the limits that are in range."""
    values = {label: np.array(values_of(report.clips, name)) for label, name in chart.figures.items()}
    values = {label: found[found > QUIETEST] for label, found in values.items()}
    rows = [(label, found, color) for (label, found), color in zip(values.items(), chart.colors) if len(found)]
    if not rows:
        return
    every = np.concatenate([found for _, found, _ in rows])
    low, high = float(every.min()), float(every.max())
    margin = max(0.0, LEAST_RANGE * max(1.0, abs(high)) - (high - low))
    is_single = len(rows) == 1
    n_bins = int(np.clip(2 * np.sqrt(len(every)), 10, MOST_BINS)) if is_single else MOST_BINS
    bins = np.linspace(low - margin, high + margin, n_bins + 1).tolist()
    for label, found, color in rows:
        axis.hist(found, bins, color=color, label=label, histtype="stepfilled", alpha=0.85 if is_single else 0.3)
        if not is_single:
            axis.hist(found, bins, color=color, histtype="step", linewidth=1.4)
    axis.set(xlabel=chart.xlabel, ylabel="clips", ylim=(0, None))
    axis.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
    left, right = axis.get_xlim()
    for name in chart.limits:
        if left <= (limit := getattr(report.limits, name)) <= right:
            axis.axvline(limit, color=RED, linewidth=1.2, linestyle="--", label="limit")
    if len(chart.figures) > 1:
        _add_legend(axis)


def _add_legend(axis: Axes) -> None:
    """Names above the axes, where they hide nothing."""
    axis.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), columnspacing=1.2, handlelength=1.4)


def _draw_text_and_speech(axis: Axes, report: DataReport) -> None:
    odd = {finding.index for finding in report.findings if finding.kind in ("speaking_rate", "too_few_frames")}
    for label, color, size, is_odd in (("usual", BLUE, 10, False), ("odd rate, or too few frames", RED, 28, True)):
        group = [clip for clip in report.clips if "speaking rate" in clip.figures]
        group = [clip for clip in group if (clip.utterance.index in odd) == is_odd]
        if group:
            x = np.array([clip.transcript.n_tokens for clip in group])
            y = x / [clip.figures["speaking rate"] for clip in group]
            axis.scatter(x, y, s=size, color=color, alpha=0.9 if is_odd else 0.6, linewidths=0, label=label)
    axis.set(xlabel="symbols", ylabel="speech (s)", xlim=(0, None), ylim=(0, None))
    if odd and axis.has_data():
        _add_legend(axis)


def _draw_pitch(axis: Axes, report: DataReport) -> None:
    voices = [name for name, figures in report.speakers.items() if figures["pitch_median"] is not None]
    voices = sorted(voices, key=lambda name: -report.speakers[name]["n_clips"])[:MOST_RANGES]
    if len(voices) <= MOST_CURVES:
        _draw_pitch_curves(axis, report, voices)
    else:
        _draw_pitch_ranges(axis, report, voices)
    axis.set_xlabel("pitch (Hz)")
    scale_pitch(axis, "x")


def _draw_pitch_curves(axis: Axes, report: DataReport, voices: Sequence[str]) -> None:
    for voice in voices:
        clips = [clip for clip in report.clips if (clip.utterance.speaker or "") == voice]
        values = np.concatenate([clip.sound.pitch for clip in clips if clip.sound is not None])
        counts = np.histogram(values, PITCH_EDGES)[0]
        middles, share = np.sqrt(PITCH_EDGES[1:] * PITCH_EDGES[:-1]), 100 * counts / len(values)
        axis.plot(middles, share, linewidth=1.6, label=voice or "all clips")
        axis.fill_between(middles, 0, share, alpha=0.12)
    axis.set(ylabel="% of voiced time", ylim=(0, None))
    if len(voices) > 1:
        _add_legend(axis)


def _draw_pitch_ranges(axis: Axes, report: DataReport, voices: Sequence[str]) -> None:
    voices = sorted(voices, key=lambda name: report.speakers[name]["pitch_median"])
    medians, lows, highs = (
        [report.speakers[name][key] for name in voices] for key in ("pitch_median", "pitch_low", "pitch_high")
    )
    axis.hlines(range(len(voices)), lows, highs, color=BLUE)
    axis.plot(medians, range(len(voices)), "o", color=BLUE, markersize=3)
    axis.set_yticks(range(len(voices)), voices, fontsize=5)


_SILENCES = {"at the start": "leading silence", "at the end": "trailing silence", "longest pause": "longest pause"}
_LEVELS = {"noise": "noise", "speech": "speech level", "peak": "peak"}
_CHARTS = (
    (
        "Durations",
        "how long the recordings are; dashed: a limit, where one is in range",
        Histogram("duration (s)", {"clips": "duration"}, limits=("report_max_seconds", "report_min_seconds")),
    ),
    ("Text and speech", "each point is a clip, its silence at both ends left out", _draw_text_and_speech),
    (
        "Speaking rate",
        "symbols of the cleaned text a second of speech",
        Histogram("speaking rate (symbols/s)", {"clips": "speaking rate"}),
    ),
    (
        "Silence",
        "at both ends, and the longest pause between; dashed: the limit at the ends",
        Histogram("silence (s)", _SILENCES, limits=("report_max_silence",)),
    ),
    (
        "Levels",
        "peak, speech (root mean square) and the quietest twentieth of each clip; dashed: the least level of speech",
        Histogram("level (dB relative to full scale)", _LEVELS, (GRAY, BLUE, ORANGE), ("report_min_level",)),
    ),
    ("Pitch", "Praat, 75 to 600 Hz, over voiced time; of many speakers 5th to 95th percentile and median", _draw_pitch),
)
