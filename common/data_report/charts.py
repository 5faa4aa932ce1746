"""The report's charts: Matplotlib's figures as SVG whose text is text; drawn without a display."""

import io
import warnings
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from common.audio.pitch import PITCH_CEILING, PITCH_FLOOR
from common.data_report.clip import QUIETEST
from common.data_report.summary import DataReport, values_of
from common.pages import read_table

PITCH_EDGES = np.geomspace(PITCH_FLOOR, PITCH_CEILING, 73)  # Hz, half a semitone apart
SIZE = (4.7, 3.0)  # inches
MOST_CURVES = 8  # speakers with a curve of pitch, those with the most clips
BLUE, RED = "tab:blue", "tab:red"
STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10.5,  # units of an SVG that a page shows at about one pixel a unit
    "grid.color": "lightgray",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text, not outlines
    "text.parse_math": False,  # a speaker's name with dollar signs is no formula
}


@matplotlib.rc_context(STYLE)
def draw(report: DataReport) -> list[dict[str, str]]:
    """The charts of ``report`` that have something to show: rows of charts.tsv with the ``address`` of each SVG."""
    charts = []
    for chart in read_table("data_report/charts.tsv"):
        figure = Figure(figsize=SIZE, layout="constrained")
        axis = figure.subplots()
        axis.grid()
        if chart["title"] == "Pitch":
            _draw_pitch(axis, report)
        elif chart["title"] == "Text and speech":
            _draw_text_and_speech(axis, report)
        else:
            _draw_histogram(axis, report, chart)
        if axis.has_data():
            axis.set_xlabel(chart["xlabel"])
            if len(axis.get_legend_handles_labels()[1]) > 1:  # above the axes, where it hides nothing
                axis.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), columnspacing=1.2, handlelength=1.4)
            charts.append({**chart, "address": _address(figure)})
    return charts


def _address(figure: Figure) -> str:
    """The address of a figure as an SVG that the page holds itself."""
    file = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # text in a script that Matplotlib's font lacks
        figure.savefig(file, format="svg")
    return f"data:image/svg+xml,{quote(file.getvalue(), safe='/:;=+,()@!*?')}"


def _draw_histogram(axis: Axes, report: DataReport, chart: Mapping[str, str]) -> None:
    """Histograms over the same bins, and dashed lines at the limits that are in range."""
    found = [np.array(values_of(report.clips, name)) for name in chart["figures"].split(", ")]
    found = [values[values > QUIETEST] for values in found]
    every = np.concatenate(found)
    if not len(every):
        return
    bins = np.histogram_bin_edges(np.round(every, 9), int(np.clip(2 * np.sqrt(len(every)), 10, 40)))
    for values, label, color in zip(found, chart["labels"].split(", "), chart["colors"].split(", ")):
        fill = (f"tab:{color}", 0.85 if len(found) == 1 else 0.3)
        axis.hist(values, bins.tolist(), histtype="stepfilled", label=label, facecolor=fill, edgecolor=f"tab:{color}")
    axis.set(ylabel="clips", ylim=(0, None))
    axis.yaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
    left, right = axis.get_xlim()
    for name in filter(None, chart["limits"].split(", ")):
        if left <= (limit := getattr(report.limits, name)) <= right:
            axis.axvline(limit, color=RED, linewidth=1.2, linestyle="--", label="limit")


def _draw_text_and_speech(axis: Axes, report: DataReport) -> None:
    odd = {finding.index for finding in report.findings if finding.kind in ("speaking_rate", "too_few_frames")}
    for label, color, size, is_odd in (("usual", BLUE, 10, False), ("odd rate, or too few frames", RED, 28, True)):
        group = [clip for clip in report.clips if "speaking rate" in clip.figures]
        group = [clip for clip in group if (clip.utterance.index in odd) == is_odd]
        if group:
            x = np.array([clip.n_tokens for clip in group])
            y = x / [clip.figures["speaking rate"] for clip in group]
            axis.scatter(x, y, s=size, color=color, alpha=0.9 if is_odd else 0.6, linewidths=0, label=label)
    axis.set(ylabel="speech (s)", xlim=(0, None), ylim=(0, None))


def _draw_pitch(axis: Axes, report: DataReport) -> None:
    """The share of each speaker's voiced time by its pitch, on a scale of equal intervals."""
    voices = [name for name, figures in report.speakers.items() if figures["pitch_median"] is not None]
    for voice in sorted(voices, key=lambda name: -report.speakers[name]["n_clips"])[:MOST_CURVES]:
        clips = [clip for clip in report.clips if (clip.utterance.speaker or "") == voice]
        values = np.concatenate([clip.sound.pitch for clip in clips if clip.sound is not None])
        counts = np.histogram(values.clip(PITCH_FLOOR, PITCH_CEILING), PITCH_EDGES)[0]
        middles, share = np.sqrt(PITCH_EDGES[1:] * PITCH_EDGES[:-1]), 100 * counts / len(values)
        axis.plot(middles, share, linewidth=1.6, label=voice or "all clips")
        axis.fill_between(middles, 0, share, alpha=0.12)
    axis.set(ylabel="% of voiced time", ylim=(0, None), xscale="log")
    axis.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_locator(NullLocator())
