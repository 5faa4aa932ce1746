"""Charts as SVG whose colors follow the page's, light and dark, and whose text is text; drawn without a display."""

import base64
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.figure import Figure
from PIL import Image

from common.pages.shell import palette

# Matplotlib takes no CSS variables: each color is drawn as a placeholder, which the SVG's text then replaces.
_NAMES = re.findall(r"--(\w+):", palette().partition("}")[0])
_PLACEHOLDER = "#c0de{:02x}"
COLORS = {name: _PLACEHOLDER.format(number) for number, name in enumerate(_NAMES)}
SERIES = tuple(COLORS[name] for name in ("blue", "orange", "green", "red", "violet", "brown", "pink", "grey"))
FONT_SIZE = 10.5  # units of an SVG that a page shows at about one pixel a unit


@contextmanager
def chart_style() -> Iterator[None]:
    """Figures made within have the pages' colors and text size."""
    ink, muted, line = (COLORS[name] for name in ("ink", "muted", "line"))
    settings: dict[Any, Any] = {
        "axes.edgecolor": muted,
        "axes.facecolor": "none",
        "axes.labelcolor": ink,
        "axes.prop_cycle": cycler(color=SERIES),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlelocation": "left",
        "axes.titlesize": "medium",
        "figure.facecolor": "none",
        "font.size": FONT_SIZE,
        "grid.color": line,
        "grid.linewidth": 0.7,
        "legend.fontsize": "medium",
        "legend.frameon": False,
        "savefig.facecolor": "none",
        "svg.fonttype": "none",  # text, not outlines
        "svg.hashsalt": "chart",  # equal charts are equal files
        "text.color": ink,
        "text.parse_math": False,  # a speaker's name with dollar signs is no formula
        "xtick.color": muted,
        "xtick.labelcolor": ink,
        "ytick.color": muted,
        "ytick.labelcolor": ink,
    }
    with matplotlib.rc_context(settings):
        yield


def to_svg(figure: Figure) -> str:
    """The SVG of a ``figure`` that was made in `chart_style`; it has its colors with it, and needs no page."""
    file = io.StringIO()
    with chart_style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # text in a script that Matplotlib's font lacks
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"(?<=image/png;base64,)[^\"]+", lambda found: _with_palette(found.group()), svg)
    svg = re.sub(r"(?<=: )#c0de([0-9a-f]{2})\b", lambda found: f"var(--{_NAMES[int(found.group(1), 16)]})", svg)
    svg = re.sub(r"(font(?:-family)?: (?:[\d.]+px )?)'DejaVu Sans'[^;\"]*", r"\1system-ui, sans-serif", svg)
    return svg.replace(">", f"><style>{palette()}svg {{ background: var(--paper); }}</style>", 1)


def _with_palette(png: str) -> str:
    """A PNG, in base64 as the result, with a byte a pixel instead of four, where it has few enough colors."""
    pixels = np.array(Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA")).view(np.uint32)[..., 0]
    colors, indices = np.unique(pixels, return_inverse=True)
    if len(colors) > 256:
        return png
    image = Image.fromarray(indices.reshape(pixels.shape).astype(np.uint8))
    image.putpalette(colors.tobytes(), "RGBA")
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode("ascii")


def data_url(svg: str) -> str:
    """The address of an SVG that a page holds itself."""
    return f"data:image/svg+xml,{quote(svg, safe='/:;=+,()@!*?')}"
