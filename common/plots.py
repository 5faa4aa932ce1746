"""Figures of utterances over time: mel-spectrograms, attention, pitch and other curves; without a display."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import CenteredNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager, get_font
from torch import Tensor

from common.audio.mel import hz_to_mel
from common.config import AudioConfig
from common.files import write_atomically

_FONT = "DejaVu Sans"
matplotlib.rcParams["text.parse_math"] = False  # titles and symbols may hold dollar signs
MIN_WIDTH, MAX_WIDTH, WIDTH_PER_SECOND = 10.0, 20.0, 2.0  # inches of a figure
LEFT, RIGHT, TOP, BOTTOM, GAP = 0.8, 1.2, 0.65, 0.65, 0.5  # inches around panels, and between them
MEL_HEIGHT, CURVES_HEIGHT = 2.0, 1.2  # inches of a panel
MIN_ATTENTION, MAX_ATTENTION = 4.5, 9.0  # inches
TITLE_LETTERS = 10.5  # an inch
SYMBOL_SIZE = 8.0  # points, of symbols below the mels and beside the attention
SYMBOL_ROOM = SYMBOL_SIZE * 1.2 / 72  # inches, of a line of symbols
LETTER_ROOM = SYMBOL_SIZE * 0.65 / 72  # inches, of a letter
SPACE_ROOM = SYMBOL_SIZE * 0.318 / 72  # inches, of a space
MOST_ROWS = 8  # of symbols below the mels, or columns beside the attention
HZ_TICKS = (0, 500, 1000, 2000, 4000, 8000, 16000)
PITCH = "pitch (Hz)"

Curves = Mapping[str, Tensor]  # title -> one value a frame (F,); those that are not finite are gaps


def plot_utterance(
    mels: Mapping[str, Tensor],
    *,
    audio: AudioConfig,
    title: str = "",
    symbols: Sequence[str] = (),
    durations: Tensor | None = None,
    alignment: Tensor | None = None,
    curves: Mapping[str, Curves] | None = None,
) -> Figure:
    """Draw an utterance in panels above each other, which share a time axis in seconds.

    - ``mels``: log-mel-spectrograms (n_mels, F) by title, with one range of colors; two of equal size are followed by
      their difference, the second less the first. ``audio`` describes them;
    - ``symbols``: those of its text (L,), beside the attention, and below the mels in the middle of their ``durations``
      (L,) in frames where these are given. Where room is short they stand in several rows;
    - ``alignment``: attention's weights (F, L), with ``durations`` as a line over it;
    - ``curves``: groups of them by the name of their axis, such as `PITCH`, which is 0 where unvoiced.
    """
    seconds = audio.hop_length / audio.sampling_rate
    arrays = {name: to_array(mel) for name, mel in mels.items()}
    shared = Normalize()
    shared.autoscale_None(np.ma.masked_invalid(np.concatenate([np.zeros(0), *map(np.ravel, arrays.values())])))
    images = [(name, mel, {"norm": shared, "cmap": "magma"}) for name, mel in arrays.items()]
    if len(arrays) == 2 and len({mel.shape for mel in arrays.values()}) == 1:
        (name, mel), (other, second) = arrays.items()
        images.append((f"{other} - {name}", second - mel, {"norm": CenteredNorm(), "cmap": "RdBu_r"}))
    weights = np.zeros((0, 0)) if alignment is None else to_array(alignment).T  # (L, F)
    counts = np.zeros(0) if durations is None else to_array(durations)  # (L,)
    ends = np.cumsum(counts)
    groups = {unit: group for unit, group in (curves or {}).items() if group}
    lines = [values for group in groups.values() for values in group.values()]
    length = max(1, *(array.shape[-1] for array in (*arrays.values(), weights, *lines))) * seconds

    attention_height = min(max(MIN_ATTENTION, len(weights) * SYMBOL_ROOM), MAX_ATTENTION)
    each = np.arange(len(weights))
    beside, each = _stagger(symbols, each, room=attention_height, length=len(weights), upwards=True)
    margin = LEFT + max((one.count(" ") for one in beside), default=0) * SPACE_ROOM
    width = min(max(MIN_WIDTH, WIDTH_PER_SECOND * length + margin + RIGHT), MAX_WIDTH)
    middles = np.where(counts > 0, ends - counts / 2, np.nan) * seconds
    labels, middles = _stagger(symbols, middles, room=width - margin - RIGHT, length=length)
    n_rows = max((one.count("\n") + 1 for one in labels), default=0)

    heights = [MEL_HEIGHT] * len(images) + [attention_height] * bool(weights.size) + [CURVES_HEIGHT] * len(groups)
    labelled = (len(images) or len(heights)) - 1  # the panel above the symbols
    gaps = [GAP + n_rows * SYMBOL_ROOM * (index == labelled) for index in range(len(heights))]
    figure, axes = _make_panels(heights, gaps, width=width, margin=margin)
    _set_title(figure, " ".join(title.split()), symbols)
    for panel, (name, mel, colors) in zip(axes, images):
        _draw_image(panel, name, mel, seconds=seconds, first=0, unit="log amplitude", **colors)
        label_mel_axis(panel.yaxis, audio)
    if weights.size:
        _draw_attention(axes[len(images)], weights, counts, seconds=seconds)
        axes[len(images)].set_yticks(each, beside, fontsize=SYMBOL_SIZE)
    for panel, (unit, group) in zip(axes[len(axes) - len(groups) :], groups.items()):
        _draw_curves(panel, unit, group, seconds=seconds)
    for axis in axes:
        axis.set(xlim=(0, length), xlabel="time (s)" if axis is axes[-1] else "")
        axis.tick_params(axis="x", bottom=axis is axes[-1], labelbottom=axis is axes[-1])
        axis.vlines(ends * seconds, 0, 1, transform=axis.get_xaxis_transform(), color="gray", alpha=0.4, linewidth=0.5)
    below = axes[labelled].xaxis
    below.set_ticks(middles, labels, minor=True, fontsize=SYMBOL_SIZE)
    below.remove_overlapping_locs = False  # major ticks do not take their place
    below.set_tick_params(which="minor", length=0, pad=4, labelbottom=bool(labels))
    below.set_tick_params(which="major", pad=4 + 72 * n_rows * SYMBOL_ROOM)
    return figure


def _make_panels(heights: list[float], gaps: list[float], *, width: float, margin: float) -> tuple[Figure, list[Axes]]:
    """A figure with panels of these heights, and a gap below each, in inches; other layouts draw all twice."""
    rows = [size for panel in zip(heights, gaps) for size in panel]
    height, bottom = TOP + sum(rows) - GAP + BOTTOM, BOTTOM - GAP  # the last gap is part of the margin below
    figure = Figure(figsize=(width, height))
    place = {"left": margin / width, "right": 1 - RIGHT / width, "top": 1 - TOP / height, "bottom": bottom / height}
    grid = figure.add_gridspec(len(rows), 1, height_ratios=rows, hspace=0, **place)
    return figure, [figure.add_subplot(grid[row, 0]) for row in range(0, len(rows), 2)]


@lru_cache(maxsize=1000)
def _font_of(character: str) -> str | None:
    """An installed font that has a character, matplotlib's own first; None where there is none."""
    for font in sorted(fontManager.ttflist, key=lambda font: font.name != _FONT):
        with suppress(OSError, RuntimeError):
            if get_font(font.fname).get_char_index(ord(character)):
                return font.name
    return None


def _set_title(figure: Figure, text: str, symbols: Sequence[str]) -> None:
    """One line of what fonts have of the text, with its symbols where they lack some of it."""
    if None in map(_font_of, text):
        text += "".join(symbols)
    fonts = {one: _font_of(one) for one in text if one.isprintable()}
    drawable, n_letters = "".join(filter(fonts.get, text)), int(figure.get_figwidth() * TITLE_LETTERS)
    title = textwrap.shorten(drawable, n_letters, placeholder="\u2026")
    figure.suptitle(title, x=0.01, ha="left", family=[*dict.fromkeys([_FONT, *filter(None, fonts.values())])])


def save_png(figure: Figure, path: Path) -> None:
    """Write ``figure`` as a PNG; raises as `common.files.write_atomically`."""
    write_atomically(path, lambda file: figure.savefig(file, format="png"), durable=False)


def to_image(figure: Figure) -> np.ndarray:
    """The drawn figure as ``(height, width, 3)`` uint8."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def to_array(tensor: Tensor) -> np.ndarray:
    """A tensor of any device and dtype as a float32 numpy array."""
    return tensor.detach().float().cpu().numpy()


def label_mel_axis(axis: Axis, audio: AudioConfig) -> None:
    """Ticks in Hz on an axis on which channel i of ``audio``'s mels lies from i to i + 1.

    The centers of the channels divide the band into n_mels + 1 equal parts of Slaney's scale, as the filters have it.
    """
    low, high = audio.mel_fmin, audio.sampling_rate / 2 if audio.mel_fmax is None else audio.mel_fmax
    inside = [hz for hz in HZ_TICKS if low <= hz <= high]
    mels, (lowest, highest) = hz_to_mel(np.array(inside)), hz_to_mel(np.array([low, high]))
    places = (mels - lowest) / (highest - lowest) * (audio.n_mels + 1) - 0.5
    axis.set_ticks(np.clip(places, 0, audio.n_mels), [str(hz) for hz in inside])  # the ends lie half a channel outside
    axis.set_label_text("frequency (Hz)")


def _draw_image(
    axis: Axes, title: str, rows: np.ndarray, *, seconds: float, first: float, unit: str, **colors: Any
) -> None:
    """rows (N, F), a frame every ``seconds``, from ``first`` upwards; ``unit`` says what the colors are."""
    extent = (0, rows.shape[1] * seconds, first, first + len(rows))
    # Without interpolation, since smoothed images make larger files.
    image = axis.imshow(rows, aspect="auto", origin="lower", interpolation="none", extent=extent, **colors)
    axis.figure.colorbar(image, cax=axis.inset_axes((1.01, 0, 0.015, 1)), label=unit)
    axis.set_title(title, loc="left", y=1.0, fontsize="medium")


def _draw_attention(axis: Axes, weights: np.ndarray, counts: np.ndarray, *, seconds: float) -> None:
    """Weights (L, F) with the text upwards, and a line through the symbols' ``counts`` of frames (L,) or ()."""
    title, ends = "attention; line: durations" if len(counts) else "attention", np.cumsum(counts)
    _draw_image(axis, title, weights, seconds=seconds, first=-0.5, unit="weight", cmap="viridis", vmin=0, vmax=1)
    times = np.stack([ends - counts, ends], axis=1).ravel() * seconds
    axis.plot(times, np.arange(len(counts)).repeat(2), color="white", linewidth=0.8)
    axis.set_ylabel("symbol")


def _draw_curves(axis: Axes, unit: str, curves: Curves, *, seconds: float) -> None:
    """Curves (F,) over time; one without a finite value is left out, and so is pitch of 0."""
    axis.set_ylabel(unit)
    for name, tensor in curves.items():
        values = to_array(tensor)
        values = np.where(np.isfinite(values) & ((values != 0) | (unit != PITCH)), values, np.nan)
        if not np.isnan(values).all():
            axis.plot((np.arange(len(values)) + 0.5) * seconds, values, linewidth=1.6, alpha=0.8, label=name)
    axis.grid(axis="y", alpha=0.3)
    if axis.lines:
        axis.legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=len(curves), fontsize="small", frameon=False)


def _stagger(
    symbols: Sequence[str], places: np.ndarray, *, room: float, length: float, upwards: bool = False
) -> tuple[list[str], np.ndarray]:
    """Labels of the symbols whose places are numbers, and the places, on an axis of ``length``, ``room`` inches long.

    Line breaks, or ``upwards`` spaces, take each to the first row or column in which it has room. Beyond `MOST_ROWS`,
    every n-th symbol has a label, each of which ends in "…". There are none unless each symbol has a place.
    """
    placed = np.flatnonzero(np.isfinite(places)) if len(places) == len(symbols) else np.zeros(0, int)
    shown = [symbol.replace(" ", "\u2423") for symbol in symbols]
    sizes = [SYMBOL_ROOM if upwards else (len(one) + 0.5) * LETTER_ROOM for one in shown]
    step = math.ceil(sum(sizes[index] for index in placed) / (MOST_ROWS * room)) or 1
    ends, labels, n_spaces = list[float](), list[str](), 2 * max(map(len, shown), default=0) + 2
    for index in placed[::step]:
        start = places[index] * room / length - sizes[index] / 2
        row = next((row for row, end in enumerate(ends) if end <= start + 1e-6), len(ends))
        ends[row : row + 1] = [start + sizes[index]]
        text = shown[index] + "\u2026" * (step > 1)
        labels.append(text + " " * n_spaces * row if upwards else "\n" * row + text)
    return labels, places[placed[::step]]
