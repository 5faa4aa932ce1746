"""Figures of utterances over time: mel-spectrograms, attention, pitch and other curves; without a display."""

import itertools
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import librosa
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import CenteredNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from torch import Tensor

from common.config import AudioConfig
from common.files import write_atomically

DPI = 100  # dots an inch
MIN_WIDTH, MAX_WIDTH = 10.0, 20.0  # inches of a figure
WIDTH_PER_SECOND = 2.0  # inches
LEFT, RIGHT, TOP, BOTTOM = 0.85, 1.0, 0.35, 0.55  # inches around the panels
HEADER, NO_HEADER = 0.32, 0.05  # inches above a panel with a title or a legend, and one without
COLORBAR_GAP, COLORBAR = 0.1, 0.14  # inches beside a panel
TITLE_LETTERS = 10.5  # an inch
MEL_HEIGHT, CURVES_HEIGHT = 1.9, 1.1  # inches of a panel
ATTENTION_HEIGHTS = (1.9, 6.0)  # inches: the least and the most
SYMBOL_SIZE, LISTED_SIZE = 8.0, 7.0  # points, of symbols below the mels and beside the attention
SYMBOL_WIDTH, LINE_HEIGHT = 1.0, 1.1  # parts of that size, of a letter with the gap beside it
MAX_ROWS = 3  # of symbols, where one would have them overlap
HZ_TICKS = (0, 500, 1000, 2000, 4000, 8000, 16000)
LEAST_PITCH_RANGE = 40.0  # Hz of the axis, so that a level voice looks level
MEL_COLORS, ATTENTION_COLORS, DIFFERENCE_COLORS = "magma", "viridis", "RdBu_r"
LINE_STYLES = ("-", "--", ":", "-.")  # by curve, so that equal ones can both be seen
PITCH = "pitch (Hz)"
# How images are drawn: the first row at the bottom; smoothed ones make larger files.
AS_IT_IS: dict[str, Any] = {"aspect": "auto", "origin": "lower", "interpolation": "none"}

Curves = Mapping[str, Tensor]  # title -> one value a frame (F,); those that are not finite are gaps


@dataclass(frozen=True)
class _Panel:
    """A part of a figure; ``draw`` gives the image whose colors ``unit`` explains, if there is one."""

    title: str
    height: float  # inches
    draw: Callable[[Axes], AxesImage | None]
    unit: str = ""
    lines: str = "gray"  # color of the lines between symbols
    header: float = HEADER  # inches above it


def plot_utterance(
    mels: Mapping[str, Tensor],
    *,
    audio: AudioConfig,
    title: str = "",
    symbols: Sequence[str] = (),
    durations: Tensor | None = None,
    alignment: Tensor | None = None,
    pitch: Curves | None = None,
    curves: Mapping[str, Curves] | None = None,
) -> Figure:
    """Draw an utterance in panels above each other, which share a time axis in seconds.

    - ``mels``: log-mel-spectrograms (n_mels, F) by title, with one range of colors; two of equal size are followed by
      their difference, the second less the first. ``audio`` describes them;
    - ``symbols``: those of its text (L,), below the mels and beside the attention. They stand in the middle of their
      ``durations`` (L,) in frames, or without these, of the frames that attend to them most;
    - ``alignment``: attention's weights (F, L), with ``durations`` as a line over it;
    - ``pitch``: in Hz, 0 where unvoiced; ``curves``: others, by the name of their axis.

    ``title`` is shortened to one line. Symbols that would overlap stand in up to three rows; the rest is left out.
    """
    seconds = audio.hop_length / audio.sampling_rate
    images = {name: to_array(mel) for name, mel in mels.items()}
    weights = None if alignment is None else to_array(alignment).T  # (L, F)
    spans = None if durations is None else _spans(to_array(durations))
    groups = {PITCH: {name: _voiced(values) for name, values in pitch.items()}} if pitch else {}
    for unit, group in (curves or {}).items():
        groups[unit] = {name: to_array(values) for name, values in group.items()}
    panels = mel_panels = _mel_panels(images, audio)
    if weights is not None:
        panels = [*panels, _attention_panel(weights, spans, symbols, seconds=seconds)]
    panels = panels + [_curves_panel(unit, group, seconds=seconds) for unit, group in groups.items()]

    drawn = [*images.values(), *(values for group in groups.values() for values in group.values())]
    length = max(1, *(array.shape[-1] for array in [*drawn, *([] if weights is None else [weights])])) * seconds
    width = min(max(MIN_WIDTH, WIDTH_PER_SECOND * length + LEFT + RIGHT), MAX_WIDTH)
    middles = _middles(spans, weights) * seconds
    labels = {}
    if len(symbols) == len(middles):
        labels = _rows_of_symbols(symbols, middles, inches_per_second=(width - LEFT - RIGHT) / length)
    n_rows = max((label.count("\n") + 1 for label in labels.values()), default=0)
    below = (len(mel_panels) or len(panels)) - 1  # the panel that has the symbols below it
    figure, axes = _stacked(panels, width=width, title=title, gaps={below: n_rows * SYMBOL_SIZE * LINE_HEIGHT / 72})
    for axis, panel in zip(axes, panels):
        axis.set_xlim(0, length)
        axis.tick_params(axis="x", bottom=axis is axes[-1], labelbottom=axis is axes[-1])
        if spans is not None:
            starts = spans[(spans[:, 0] > 0) & (spans[:, 1] > spans[:, 0]), 0] * seconds
            over = axis.get_xaxis_transform()
            axis.vlines(starts, 0, 1, transform=over, color=panel.lines, alpha=0.3, linewidth=0.5)
    axes[-1].set_xlabel("time (s)")
    if labels:
        _place_symbols(axes[below].xaxis, labels, n_rows)
    return figure


def save_png(figure: Figure, path: Path) -> None:
    """Write ``figure`` as a PNG; raises as `common.files.write_atomically`."""
    write_atomically(path, lambda file: figure.savefig(file, format="png"), durable=False)


def to_image(figure: Figure) -> np.ndarray:
    """The drawn figure as ``(height, width, 3)`` uint8."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def to_array(tensor: Tensor) -> np.ndarray:
    """A tensor of any device and dtype as a numpy array (bfloat16, which numpy lacks, as float32)."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor).numpy()


def label_mel_axis(axis: Axis, audio: AudioConfig) -> None:
    """Ticks in Hz on an axis on which channel i of ``audio``'s mels lies from i to i + 1.

    The centers of the channels divide the band into n_mels + 1 equal parts of Slaney's scale, as the filters have it.
    """
    low, high = audio.mel_fmin, audio.sampling_rate / 2 if audio.mel_fmax is None else audio.mel_fmax
    inside = [hz for hz in HZ_TICKS if low <= hz <= high]
    mels, (lowest, highest) = librosa.hz_to_mel(inside), librosa.hz_to_mel((low, high))
    places = (mels - lowest) / (highest - lowest) * (audio.n_mels + 1) - 0.5
    axis.set_ticks(np.clip(places, 0, audio.n_mels), [str(hz) for hz in inside])  # the ends lie half a channel outside
    axis.set_label_text("frequency (Hz)")


def _fit_pitch_axis(axis: Axes, *curves: np.ndarray) -> None:
    """Limits of the y axis around the voice: pitch in Hz, not finite where unvoiced.

    What lies more than an octave from a curve's median is taken for an error of the estimate, and may lie outside.
    """
    voiced = [curve[np.isfinite(curve)] for curve in curves if np.isfinite(curve).any()]
    if not voiced:
        axis.set_yticks([])
        return
    near = np.concatenate([hz[np.abs(np.log2(hz / np.median(hz))) <= 1] for hz in voiced])
    middle, half = (near.min() + near.max()) / 2, max(0.55 * np.ptp(near), LEAST_PITCH_RANGE / 2)
    axis.set_ylim(middle - half, middle + half)


def _stacked(
    panels: Sequence[_Panel], *, width: float, title: str, gaps: Mapping[int, float]
) -> tuple[Figure, list[Axes]]:
    """The panels drawn below each other, all equally wide, with color bars beside them; ``gaps`` in inches below some.

    Places are computed here, since matplotlib's layouts take as long as drawing.
    """
    height = TOP + sum(panel.header + panel.height for panel in panels) + sum(gaps.values()) + BOTTOM
    figure = Figure(figsize=(width, height), dpi=DPI)
    axes, bottom = [], height - TOP
    for index, panel in enumerate(panels):
        bottom -= panel.header + panel.height
        place = (LEFT / width, bottom / height, (width - LEFT - RIGHT) / width, panel.height / height)
        axes.append(figure.add_axes(place))
        image = panel.draw(axes[-1])
        axes[-1].set_title(_plain(panel.title), loc="left", fontsize="medium")
        if image is not None:
            beside = (place[0] + place[2] + COLORBAR_GAP / width, place[1], COLORBAR / width, place[3])
            figure.colorbar(image, cax=figure.add_axes(beside), label=panel.unit)
        bottom -= gaps.get(index, 0.0)
    if title:
        shortened = textwrap.shorten(_plain(title), int(width * TITLE_LETTERS), placeholder="\u2026")
        figure.suptitle(shortened, x=0.01, y=1 - 0.08 / height, va="top", ha="left")
    return figure, axes


def _mel_panels(mels: Mapping[str, np.ndarray], audio: AudioConfig) -> list[_Panel]:
    """A panel for each mel, and one for the difference of two."""

    def draw(axis: Axes, mel: np.ndarray, norm: Normalize, colors: str) -> AxesImage:
        label_mel_axis(axis.yaxis, audio)
        extent = (0, mel.shape[1] * audio.hop_length / audio.sampling_rate, 0, len(mel))
        return axis.imshow(mel, **AS_IT_IS, extent=extent, cmap=colors, norm=norm)

    norm, unit = Normalize(*_color_range(*mels.values())), "log amplitude"
    header = HEADER if any(mels) else NO_HEADER
    panels = [
        _Panel(name, MEL_HEIGHT, partial(draw, mel=mel, norm=norm, colors=MEL_COLORS), unit, "white", header)
        for name, mel in mels.items()
    ]
    if len(mels) == 2 and len({mel.shape for mel in mels.values()}) == 1:
        first, second = mels
        difference = mels[second] - mels[first]
        largest = max(map(abs, _color_range(difference))) or 1.0
        drawn = partial(draw, mel=difference, norm=CenteredNorm(0, largest), colors=DIFFERENCE_COLORS)
        panels.append(_Panel(f"{second} - {first}", MEL_HEIGHT, drawn, unit))
    return panels


def _attention_panel(
    weights: np.ndarray, spans: np.ndarray | None, symbols: Sequence[str], *, seconds: float
) -> _Panel:
    """Weights (L, F) with the text upwards, and a line through the spans."""
    n_symbols, n_frames = weights.shape
    least, most = ATTENTION_HEIGHTS
    height = min(max(least, n_symbols * LISTED_SIZE * LINE_HEIGHT / 72), most)

    def draw(axis: Axes) -> AxesImage:
        extent = (0, n_frames * seconds, -0.5, n_symbols - 0.5)
        image = axis.imshow(weights, **AS_IT_IS, extent=extent, cmap=ATTENTION_COLORS, norm=Normalize(0, 1))
        if spans is not None:
            at = np.repeat(np.arange(n_symbols), 2)
            axis.plot(spans.ravel() * seconds, at, color="white", linewidth=0.8)
        if len(symbols) == n_symbols:
            _list_symbols(axis.yaxis, symbols, height=height)
        else:
            axis.set_ylabel("symbol")
        return image

    return _Panel("attention" if spans is None else "attention; line: durations", height, draw, "weight")


def _curves_panel(unit: str, curves: Mapping[str, np.ndarray], *, seconds: float) -> _Panel:
    """Curves (F,) over time; one without a finite value is left out."""

    def draw(axis: Axes) -> None:
        axis.set_ylabel(unit)
        drawn = {name: values.astype(np.float64) for name, values in curves.items() if np.isfinite(values).any()}
        for (name, values), style in zip(drawn.items(), itertools.cycle(LINE_STYLES)):
            values = np.where(np.isfinite(values), values, np.nan)
            axis.plot((np.arange(len(values)) + 0.5) * seconds, values, style, linewidth=1.6, label=_plain(name))
        if unit == PITCH:
            _fit_pitch_axis(axis, *drawn.values())
        axis.grid(axis="y", alpha=0.3)
        if any(drawn):
            axis.legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=len(drawn), fontsize="small", frameon=False)

    return _Panel("", CURVES_HEIGHT, draw)


def _rows_of_symbols(symbols: Sequence[str], middles: np.ndarray, *, inches_per_second: float) -> dict[float, str]:
    """Labels by their middle in seconds, each in the first row where it does not touch the one before it.

    Line breaks before a label move it to its row; symbols without a middle or without room are left out.
    """
    ends = [-np.inf] * MAX_ROWS  # inches, of the last symbol in each row
    labels = {}
    for index in np.argsort(middles, kind="stable"):
        label = _visible(symbols[index])
        middle, half = middles[index] * inches_per_second, len(label) * SYMBOL_WIDTH * SYMBOL_SIZE / 144
        row = next((row for row, end in enumerate(ends) if end <= middle - half), None)
        if row is not None:
            ends[row] = middle + half
            labels[float(middles[index])] = "\n" * row + label
    return labels


def _place_symbols(axis: Axis, labels: Mapping[float, str], n_rows: int) -> None:
    """Labels as the minor ticks, between the axis and the numbers of its major ticks."""
    axis.remove_overlapping_locs = False  # major ones do not take their place
    axis.set_ticks(list(labels), list(labels.values()), minor=True, fontsize=SYMBOL_SIZE)
    axis.set_tick_params(which="minor", length=0, pad=5, labelbottom=True)
    axis.set_tick_params(which="major", pad=5 + SYMBOL_SIZE * LINE_HEIGHT * n_rows)


def _list_symbols(axis: Axis, symbols: Sequence[str], *, height: float) -> None:
    """The symbols beside an axis of so many inches on which each takes 1: every n-th that has room."""
    capacity = int(height * 72 / (LISTED_SIZE * LINE_HEIGHT) + 1e-6)
    listed = range(0, len(symbols), -(-len(symbols) // capacity))
    axis.set_ticks(list(listed), [_visible(symbols[index]) for index in listed], fontsize=LISTED_SIZE)
    axis.set_tick_params(length=2)


def _spans(durations: np.ndarray) -> np.ndarray:
    """Durations (L,) -> (L, 2): where each symbol starts and ends."""
    ends = np.cumsum(durations)
    return np.stack([ends - durations, ends], axis=1)


def _middles(spans: np.ndarray | None, weights: np.ndarray | None) -> np.ndarray:
    """The middle of each symbol (L,) in frames, NaN for one without frames; empty where nothing says it.

    Without spans it is that of the frames whose attention ``weights`` (L, F) are greatest at the symbol.
    """
    if spans is not None:
        return np.where(spans[:, 1] > spans[:, 0], spans.mean(axis=1), np.nan)
    if weights is None:
        return np.zeros(0)
    attended = weights.argmax(axis=0)  # (F,)
    sums = np.bincount(attended, np.arange(len(attended)) + 0.5, minlength=len(weights))
    counts = np.bincount(attended, minlength=len(weights))
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _voiced(pitch: Tensor) -> np.ndarray:
    """Pitch with gaps where it is 0."""
    values = to_array(pitch).astype(np.float64)
    return np.where(values > 0, values, np.nan)


def _color_range(*arrays: np.ndarray) -> tuple[float, float]:
    """The least and the greatest finite value."""
    finite = np.concatenate([array[np.isfinite(array)] for array in arrays]) if arrays else np.zeros(0)
    return (float(np.min(finite)), float(np.max(finite))) if finite.size else (0.0, 1.0)


def _visible(symbol: str) -> str:
    """A symbol as it can be seen: a space as the open box."""
    return "\u2423" if symbol == " " else _plain(symbol)


def _plain(text: str) -> str:
    """Text whose dollar signs matplotlib does not read as mathematics."""
    return text.replace("$", r"\$")
