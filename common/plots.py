"""Figures of utterances over time: mel-spectrograms, attention, pitch and other curves; without a display."""

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import librosa
import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from common.config import AudioConfig
from common.files import write_atomically

matplotlib.rcParams["text.parse_math"] = False  # titles and symbols may hold dollar signs
DPI = 100  # dots an inch
MIN_WIDTH, MAX_WIDTH, MARGINS = 10.0, 20.0, 2.0  # inches of a figure, and around its panels
WIDTH_PER_SECOND = 2.0  # inches
MEL_HEIGHT, ATTENTION_HEIGHT, CURVES_HEIGHT = 2.5, 5.0, 1.6  # inches of a panel with its title
TITLE_LETTERS = 10.5  # an inch
SYMBOL_SIZE = 8.0  # points, of symbols below the mels and beside the attention
SYMBOL_ROOM = SYMBOL_SIZE * 1.2 / 72  # inches, of a letter with the gap beside or above it
SYMBOL_ROWS = 2  # below the mels
HZ_TICKS = (0, 500, 1000, 2000, 4000, 8000, 16000)
LINE_STYLES = ("-", "--", ":", "-.")  # by curve, so that equal ones can both be seen
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
    pitch: Curves | None = None,
    curves: Mapping[str, Curves] | None = None,
) -> Figure:
    """Draw an utterance in panels above each other, which share a time axis in seconds.

    - ``mels``: log-mel-spectrograms (n_mels, F) by title, with one range of colors; two of equal size are followed by
      their difference, the second less the first. ``audio`` describes them;
    - ``symbols``: those of its text (L,), below the mels and beside the attention. They stand in the middle of their
      ``durations`` (L,) in frames, or without these, of the attention to them. Where room is short, every n-th does;
    - ``alignment``: attention's weights (F, L), with ``durations`` as a line over it;
    - ``pitch``: in Hz, 0 where unvoiced; ``curves``: others, by the name of their axis.

    ``title`` is shortened to one line.
    """
    seconds = audio.hop_length / audio.sampling_rate
    images = {name: to_array(mel) for name, mel in mels.items()}
    has_difference = len(images) == 2 and len({mel.shape for mel in images.values()}) == 1
    n_mels = len(images) + has_difference
    weights = np.zeros((0, 0)) if alignment is None else to_array(alignment).T  # (L, F)
    spans = None if durations is None else _spans(to_array(durations))
    groups = ({PITCH: pitch} if pitch else {}) | dict(curves or {})

    heights = [MEL_HEIGHT] * n_mels + [ATTENTION_HEIGHT] * bool(weights.size) + [CURVES_HEIGHT] * len(groups)
    lines = [values for group in groups.values() for values in group.values()]
    length = max(1, *(array.shape[-1] for array in (*images.values(), weights, *lines))) * seconds
    width = min(max(MIN_WIDTH, WIDTH_PER_SECOND * length + MARGINS), MAX_WIDTH)
    figure = Figure(figsize=(width, sum(heights)), dpi=DPI, layout="constrained")
    figure.suptitle(textwrap.shorten(title, int(width * TITLE_LETTERS), placeholder="\u2026"), x=0.01, ha="left")
    axes = list(figure.subplots(len(heights), height_ratios=heights, squeeze=False)[:, 0])

    panels = iter(axes)
    low, high = _color_range(*images.values())
    for name, mel in images.items():
        _draw_mel(next(panels), name, mel, audio, vmin=low, vmax=high, cmap="magma")
    if has_difference:
        (name, mel), (other, second) = images.items()
        most = max(map(abs, _color_range(second - mel))) or 1.0
        _draw_mel(next(panels), f"{other} - {name}", second - mel, audio, vmin=-most, vmax=most, cmap="RdBu_r")
    if weights.size:
        _draw_attention(next(panels), weights, spans, symbols, seconds=seconds)
    for unit, group in groups.items():
        _draw_curves(next(panels), unit, group, seconds=seconds)
    for axis in axes:
        axis.set_xlim(0, length)
        axis.tick_params(axis="x", bottom=axis is axes[-1], labelbottom=axis is axes[-1])
        if spans is not None:
            starts = spans[(spans[:, 0] > 0) & (spans[:, 1] > spans[:, 0]), 0] * seconds
            axis.vlines(starts, 0, 1, transform=axis.get_xaxis_transform(), color="gray", alpha=0.4, linewidth=0.5)
    axes[-1].set_xlabel("time (s)")
    middles = _middles(spans, weights)
    if len(symbols) == len(middles):
        _place_symbols(axes[(n_mels or len(axes)) - 1], symbols, middles * seconds, room=width - MARGINS)
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


def _draw_image(axis: Axes, rows: np.ndarray, *, seconds: float, first: float, unit: str, **colors: Any) -> None:
    """rows (N, F), a frame every ``seconds``, from ``first`` upwards; ``unit`` says what the colors are."""
    extent = (0, rows.shape[1] * seconds, first, first + len(rows))
    # Without interpolation, since smoothed images make larger files.
    image = axis.imshow(rows, aspect="auto", origin="lower", interpolation="none", extent=extent, **colors)
    axis.figure.colorbar(image, cax=axis.inset_axes((1.01, 0, 0.015, 1)), label=unit)


def _draw_mel(axis: Axes, title: str, mel: np.ndarray, audio: AudioConfig, **colors: Any) -> None:
    """mel (n_mels, F) with its frequencies in Hz."""
    axis.set_title(title, loc="left", fontsize="medium")
    seconds = audio.hop_length / audio.sampling_rate
    _draw_image(axis, mel, seconds=seconds, first=0, unit="log amplitude", **colors)
    label_mel_axis(axis.yaxis, audio)


def _draw_attention(
    axis: Axes, weights: np.ndarray, spans: np.ndarray | None, symbols: Sequence[str], *, seconds: float
) -> None:
    """Weights (L, F) with the text upwards, and a line through the spans."""
    n_symbols = len(weights)
    _draw_image(axis, weights, seconds=seconds, first=-0.5, unit="weight", cmap="viridis", vmin=0, vmax=1)
    axis.set_title("attention" if spans is None else "attention; line: durations", loc="left", fontsize="medium")
    if spans is not None:
        axis.plot(spans.ravel() * seconds, np.repeat(np.arange(n_symbols), 2), color="white", linewidth=0.8)
    axis.set_ylabel("symbol")
    if len(symbols) == n_symbols:
        listed = _every(n_symbols, room=ATTENTION_HEIGHT - 0.5)
        axis.set_yticks(listed, [_visible(symbols[index]) for index in listed], fontsize=SYMBOL_SIZE)


def _draw_curves(axis: Axes, unit: str, curves: Curves, *, seconds: float) -> None:
    """Curves (F,) over time; one without a finite value is left out, and so is pitch of 0."""
    axis.set_ylabel(unit)
    drawn = []
    for (name, tensor), style in zip(curves.items(), itertools.cycle(LINE_STYLES)):
        values = to_array(tensor).astype(np.float64)
        values[~np.isfinite(values) | ((values == 0) & (unit == PITCH))] = np.nan
        if not np.isnan(values).all():
            axis.plot((np.arange(len(values)) + 0.5) * seconds, values, style, linewidth=1.6, label=name)
            drawn.append(values)
    axis.grid(axis="y", alpha=0.3)
    if not drawn:
        return
    axis.legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=len(drawn), fontsize="small", frameon=False)
    if unit == PITCH:  # what lies more than an octave from the median is an error of the estimate, and may lie outside
        hz = np.concatenate(drawn)
        near = hz[np.abs(np.log2(hz / np.nanmedian(hz))) <= 1]
        axis.set_ylim(near.min() - 10, near.max() + 10)


def _place_symbols(axis: Axes, symbols: Sequence[str], middles: np.ndarray, *, room: float) -> None:
    """Symbols below the axis at their middles in seconds, in rows by turns; those without a middle are left out."""
    placed = np.flatnonzero(np.isfinite(middles))
    listed = placed[list(_every(len(placed), room=room * SYMBOL_ROWS))]
    labels = ["\n" * (turn % SYMBOL_ROWS) + _visible(symbols[index]) for turn, index in enumerate(listed)]
    axis.set_xticks(middles[listed], labels, minor=True, fontsize=SYMBOL_SIZE)
    axis.xaxis.remove_overlapping_locs = False  # major ticks do not take their place
    axis.tick_params(axis="x", which="minor", length=0, pad=4, labelbottom=True)
    axis.tick_params(axis="x", which="major", pad=4 + 1.2 * SYMBOL_SIZE * SYMBOL_ROWS)


def _every(n_symbols: int, *, room: float) -> range:
    """The indices of every n-th symbol, so that they have room in so many inches."""
    return range(0, n_symbols, max(1, -(-n_symbols // int(room / SYMBOL_ROOM))))


def _spans(durations: np.ndarray) -> np.ndarray:
    """Durations (L,) -> (L, 2): where each symbol starts and ends."""
    ends = np.cumsum(durations)
    return np.stack([ends - durations, ends], axis=1)


def _middles(spans: np.ndarray | None, weights: np.ndarray) -> np.ndarray:
    """The middle of each symbol (L,) in frames, NaN for one without frames; empty where nothing says it."""
    if spans is not None:
        return np.where(spans[:, 1] > spans[:, 0], spans.mean(axis=1), np.nan)
    return weights @ (np.arange(weights.shape[1]) + 0.5) / np.maximum(weights.sum(axis=1), 1e-9)


def _color_range(*arrays: np.ndarray) -> tuple[float, float]:
    """The least and the greatest finite value."""
    finite = np.concatenate([array[np.isfinite(array)] for array in arrays] or [np.zeros(0)])
    return (float(np.min(finite)), float(np.max(finite))) if finite.size else (0.0, 1.0)


def _visible(symbol: str) -> str:
    """A symbol as it can be seen: a space as the open box."""
    return "\u2423" if symbol == " " else symbol
