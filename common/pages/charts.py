"""Charts of pages: Matplotlib's figures as SVG whose text is text; drawn without a display."""

import io
import warnings
from typing import Any
from urllib.parse import quote

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

CHART_STYLE: dict[Any, Any] = {  # within `matplotlib.rc_context`
    "axes.axisbelow": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": "medium",
    "font.size": 10.5,  # units of an SVG that a page shows at about one pixel a unit
    "grid.color": "lightgray",
    "grid.linewidth": 0.7,
    "legend.fontsize": "medium",
    "legend.frameon": False,
    "svg.fonttype": "none",  # text, not outlines
    "svg.hashsalt": "chart",  # equal charts are equal files
    "text.parse_math": False,  # a speaker's name with dollar signs is no formula
}


def scale_pitch(axes: Axes, which: str) -> None:
    """Make the axis ``which``, "x" or "y", one of Hz on which equal intervals are equally wide."""
    axes.set(**{f"{which}scale": "log"})
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())


def to_svg(figure: Figure) -> str:
    """The SVG of a ``figure`` that was made in CHART_STYLE."""
    file = io.StringIO()
    with matplotlib.rc_context(CHART_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # text in a script that Matplotlib's font lacks
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = file.getvalue()
    return svg[svg.index("<svg") :]


def data_url(svg: str) -> str:
    """The address of an SVG that a page holds itself."""
    return f"data:image/svg+xml,{quote(svg, safe='/:;=+,()@!*?')}"
