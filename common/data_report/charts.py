"""The report's charts: histograms by Matplotlib as SVG whose text is text; drawn without a display."""

import io
from typing import Any
from urllib.parse import quote

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from common.data_report.clip import QUIETEST
from common.data_report.summary import DataReport, values_of
from common.pages.tables import read_table

SIZE = (4.7, 3.0)  # inches
STYLE: dict[Any, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10.5,  # units of an SVG that a page shows at about one pixel a unit
    "grid.color": "lightgray",
    "legend.frameon": False,
    "svg.fonttype": "none",  # text, not outlines
}


@matplotlib.rc_context(STYLE)
def draw(report: DataReport) -> list[dict[str, str]]:
    """The charts of ``report`` that have something to show: rows of charts.tsv with the ``address`` of each SVG.

    Histograms over the same bins, with dashed lines at the limits that are in range.
    """
    charts = []
    for chart in read_table("data_report/charts.tsv"):
        found = [np.array(values_of(report.clips, name)) for name in chart["figures"].split("; ")]
        found = [values[values > QUIETEST] for values in found]
        every = np.concatenate(found)
        if not len(every):
            continue
        figure = Figure(figsize=SIZE, layout="constrained")
        axis = figure.subplots()
        bins = np.histogram_bin_edges(np.round(every, 9), int(np.clip(2 * np.sqrt(len(every)), 10, 40))).tolist()
        for values, label, color in zip(found, chart["labels"].split(", "), chart["colors"].split(", ")):
            fill = (f"tab:{color}", 0.85 if len(found) == 1 else 0.3)
            axis.hist(values, bins, histtype="stepfilled", label=label, facecolor=fill, edgecolor=f"tab:{color}")
        axis.set(xlabel=chart["xlabel"], ylabel="clips", ylim=(0, None))
        axis.yaxis.set_major_locator(MaxNLocator(integer=True))
        left, right = axis.get_xlim()
        for name in filter(None, chart["limits"].split(", ")):
            if left <= (limit := getattr(report.limits, name)) <= right:
                axis.axvline(limit, color="tab:red", linewidth=1.2, linestyle="--", label="limit")
        if len(axis.get_legend_handles_labels()[1]) > 1:  # above the axes, where it hides nothing
            axis.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), columnspacing=1.2, handlelength=1.4)
        file = io.StringIO()
        figure.savefig(file, format="svg")
        charts.append({**chart, "address": f"data:image/svg+xml,{quote(file.getvalue(), safe='/:;=+,()@!*?')}"})
    return charts
