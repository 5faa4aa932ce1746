"""The report's charts: Matplotlib histograms as SVG with real text, drawn without a display."""

import io
from collections.abc import Sequence
from urllib.parse import quote

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from common.data_report.clip import QUIETEST, Clip
from common.data_report.options import Limits
from common.data_report.summary import values_of
from common.pages.tables import read_table


@matplotlib.rc_context({"font.size": 10.5, "svg.fonttype": "none"})  # page pixels; text, not outlines
def draw(clips: Sequence[Clip], limits: Limits) -> list[dict[str, str]]:
    """Draw the charts for which ``clips`` have values; return rows of charts.tsv with the ``address`` of each SVG.

    A chart's histograms share their bins, and dashed lines mark the limits that are in range.
    """
    charts = []
    for chart in read_table("data_report/charts.tsv"):
        found = [np.array(values_of(clips, name)) for name in chart["figures"].split("; ")]
        found = [values[values > QUIETEST] for values in found]
        every = np.concatenate(found)
        if not len(every):
            continue
        figure = Figure(figsize=(4.7, 3.0), layout="constrained")  # inches
        axis = figure.subplots()
        bins = np.histogram_bin_edges(np.round(every, 9), int(np.clip(2 * np.sqrt(len(every)), 10, 40))).tolist()
        for values, label, color in zip(found, chart["labels"].split(", "), chart["colors"].split(", ")):
            axis.hist(values, bins, histtype="stepfilled", label=label, color=f"tab:{color}", alpha=0.6)
        axis.set(xlabel=chart["xlabel"], ylabel="clips")
        axis.yaxis.set_major_locator(MaxNLocator(integer=True))
        left, right = axis.get_xlim()
        for name in filter(None, chart["limits"].split(", ")):
            if left <= (limit := getattr(limits, name)) <= right:
                axis.axvline(limit, color="tab:red", linestyle="--", label="limit")
        if len(axis.get_legend_handles_labels()[1]) > 1:  # above the axes, where it hides nothing
            figure.legend(ncols=4, loc="outside upper center", frameon=False, columnspacing=1.2, handlelength=1.4)
        file = io.StringIO()
        figure.savefig(file, format="svg")
        charts.append({**chart, "address": f"data:image/svg+xml,{quote(file.getvalue(), safe='/:;=+,()@!*?')}"})
    return charts
