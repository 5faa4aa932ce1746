"""Plots of utterances over time: mel-spectrograms, attention, pitch and other curves; no display is needed."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import CenteredNorm
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from torch import Tensor

from common.audio.mel import hz_to_mel
from common.config import AudioConfig
from common.files import write_atomically

matplotlib.rcParams["text.parse_math"] = False  # titles and symbols may contain dollar signs
MIN_WIDTH, MAX_WIDTH, WIDTH_PER_SECOND = 10.0, 20.0, 2.0  # of a figure, inches
MEL_HEIGHT, CURVES_HEIGHT, MARGIN = 2.5, 1.7, 0.5  # of a panel and around all panels, inches
MIN_ATTENTION, MAX_ATTENTION = 4.5, 9.0  # inches
TITLE_LETTERS = 10.5  # per inch
SYMBOL_SIZE = 8.0  # points, of symbols below the mels and beside the attention
SYMBOL_ROOM = SYMBOL_SIZE * 1.2 / 72  # height of a line of symbols, inches
LETTER_ROOM = SYMBOL_SIZE * 0.65 / 72  # width of a letter, inches
MOST_ROWS = 8  # of symbols below the mels
HZ_TICKS = (0, 500, 1000, 2000, 4000, 8000, 16000)
PITCH = "pitch (Hz)"

Curves = Mapping[str, Tensor]  # title -> one value per frame (F,); non-finite values are gaps


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
    """Draw an utterance in stacked panels that share a time axis in seconds.

    - ``mels``: log-mel-spectrograms (n_mels, F) by title, in one range of colors; two of equal size are followed by
      their difference. ``audio`` describes them.
    - ``symbols``: those of the text (L,), beside the attention. With ``durations`` (L,) in frames, they're also below
      the mels, each at the middle of its duration, in several rows if they would overlap.
    - ``alignment``: attention weights (F, L), with ``durations`` drawn over them as a line.
    - ``curves``: groups of curves by the label of their axis, such as `PITCH`, where 0 means unvoiced.
    """
    seconds = audio.hop_length / audio.sampling_rate
    arrays = {name: _to_array(mel) for name, mel in mels.items()}
    lowest, highest = min(mel.min() for mel in arrays.values()), max(mel.max() for mel in arrays.values())
    colors: dict[str, Any] = {"cmap": "magma", "vmin": lowest, "vmax": highest}
    images = [(name, mel, colors) for name, mel in arrays.items()]
    if len(arrays) == 2 and len({mel.shape for mel in arrays.values()}) == 1:
        (name, mel), (other, second) = arrays.items()
        images.append((f"{other} - {name}", second - mel, {"norm": CenteredNorm(), "cmap": "RdBu_r"}))
    ends = np.zeros(0) if durations is None else _to_array(durations).cumsum() * seconds  # (L,) s
    groups = {unit: group for unit, group in (curves or {}).items() if group}
    length = max(mel.shape[1] for mel in arrays.values()) * seconds

    width = min(max(MIN_WIDTH, WIDTH_PER_SECOND * length), MAX_WIDTH)
    heights = [MEL_HEIGHT] * len(images)
    if alignment is not None:
        heights.append(min(max(MIN_ATTENTION, alignment.size(1) * SYMBOL_ROOM), MAX_ATTENTION))
    heights += [CURVES_HEIGHT] * len(groups)
    figure = Figure(figsize=(width, sum(heights) + MARGIN), layout="constrained")
    axes = list(figure.subplots(len(heights), squeeze=False, height_ratios=heights)[:, 0])
    figure.suptitle(_title(" ".join(title.split()), symbols, width=width), x=0.01, ha="left")

    for panel, (name, mel, shades) in zip(axes, images):
        _draw_image(panel, name, mel, seconds=seconds, first=0, unit="log amplitude", **shades)
        label_mel_axis(panel.yaxis, audio)
    if alignment is not None:
        _draw_attention(axes[len(images)], _to_array(alignment).T, ends, symbols, seconds=seconds)
    for panel, (unit, group) in zip(axes[-len(groups) :], groups.items()):
        _draw_curves(panel, unit, group, seconds=seconds)
    for axis in axes:
        axis.set(xlim=(0, length), xlabel="time (s)" if axis is axes[-1] else "")
        axis.tick_params(axis="x", bottom=axis is axes[-1], labelbottom=axis is axes[-1])
        axis.vlines(ends, 0, 1, transform=axis.get_xaxis_transform(), color="gray", alpha=0.4, linewidth=0.5)
    if 0 < len(symbols) == len(ends):
        _label_symbols(axes[len(images) - 1].xaxis, symbols, ends, scale=width / length)
    return figure


def _title(text: str, symbols: Sequence[str], *, width: float) -> str:
    """Return one line of the characters that the font has, followed by the symbols if some are missing."""
    font = get_font(findfont("DejaVu Sans"))
    drawable = "".join(one for one in text if font.get_char_index(ord(one)))
    drawable += "" if drawable == text else "".join(symbols)
    return textwrap.shorten(drawable, int(width * TITLE_LETTERS), placeholder="\u2026")


def _label_symbols(axis: Axis, symbols: Sequence[str], ends: np.ndarray, *, scale: float) -> None:
    """Write symbols that have frames below an axis of ``scale`` inches per second, in as many rows as they need."""
    lengths = np.diff(ends, prepend=0)  # s
    spoken = lengths.nonzero()[0].tolist()
    places = (ends - lengths / 2)[spoken]
    labels = [symbols[index].replace(" ", "\u2423") for index in spoken]
    room = (max(map(len, labels)) + 0.5) * LETTER_ROOM / scale  # seconds
    n_rows = next((n for n in range(1, MOST_ROWS) if (places[n:] - places[:-n] >= room).all()), MOST_ROWS)
    rows = ["\n" * (index % n_rows) + label for index, label in enumerate(labels)]
    axis.set_ticks(places, rows, minor=True, fontsize=SYMBOL_SIZE)
    axis.remove_overlapping_locs = False  # major ticks don't replace them
    axis.set_tick_params(which="minor", length=0, pad=4, labelbottom=True)
    axis.set_tick_params(which="major", pad=4 + 72 * n_rows * SYMBOL_ROOM)


def save_png(figure: Figure, path: Path) -> None:
    """Write ``figure`` as a PNG; same errors as `common.files.write_atomically`."""
    write_atomically(path, lambda file: figure.savefig(file, format="png"), durable=False)


def to_image(figure: Figure) -> np.ndarray:
    """Render a figure as (height, width, 3) uint8."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _to_array(tensor: Tensor) -> np.ndarray:
    """Convert a tensor of any device and dtype to float32."""
    return tensor.detach().float().cpu().numpy()


def label_mel_axis(axis: Axis, audio: AudioConfig) -> None:
    """Set ticks in Hz on an axis where channel i of ``audio``'s mels spans i to i + 1, by Slaney's scale."""
    low, high = audio.mel_fmin, audio.sampling_rate / 2 if audio.mel_fmax is None else audio.mel_fmax
    inside = [hz for hz in HZ_TICKS if low <= hz <= high]
    mels, (lowest, highest) = hz_to_mel(np.array(inside)), hz_to_mel(np.array([low, high]))
    places = (mels - lowest) / (highest - lowest) * (audio.n_mels + 1) - 0.5
    axis.set_ticks(np.clip(places, 0, audio.n_mels), [str(hz) for hz in inside])  # the ends are half a channel outside
    axis.set_label_text("frequency (Hz)")


def _draw_image(
    axis: Axes, title: str, rows: np.ndarray, *, seconds: float, first: float, unit: str, **colors: Any
) -> None:
    """Draw rows (N, F) upward from ``first``, a frame every ``seconds``; ``unit`` is the label of the colors."""
    extent = (0, rows.shape[1] * seconds, first, first + len(rows))
    # No interpolation: smoothed images make larger files.
    image = axis.imshow(rows, aspect="auto", origin="lower", interpolation="none", extent=extent, **colors)
    axis.figure.colorbar(image, cax=axis.inset_axes((1.01, 0, 0.015, 1)), label=unit)
    axis.set_title(title, loc="left", y=1.0, fontsize="medium")


def _draw_attention(
    axis: Axes, weights: np.ndarray, ends: np.ndarray, symbols: Sequence[str], *, seconds: float
) -> None:
    """Draw weights (L, F), the text upward, and a line that shows when the symbols end (L,), unless that is empty."""
    title = "attention; line: durations" if len(ends) else "attention"
    _draw_image(axis, title, weights, seconds=seconds, first=-0.5, unit="weight", cmap="viridis", vmin=0, vmax=1)
    axis.step([0, *ends], [0, *range(len(ends))], color="white", linewidth=0.8)
    axis.set_ylabel("symbol")
    if len(symbols) == len(weights):  # padded with spaces into as many columns as they need
        n_columns = math.ceil(len(weights) * SYMBOL_ROOM / MAX_ATTENTION)
        column = " " * (2 * max(map(len, symbols)) + 2)
        labels = [one.replace(" ", "\u2423") + column * (index % n_columns) for index, one in enumerate(symbols)]
        axis.set_yticks(range(len(labels)), labels, fontsize=SYMBOL_SIZE)


def _draw_curves(axis: Axes, unit: str, curves: Curves, *, seconds: float) -> None:
    """Draw curves (F,) over time; skip curves without a finite value, and pitch of 0."""
    axis.set_ylabel(unit)
    for name, tensor in curves.items():
        values = _to_array(tensor)
        values = np.where(np.isfinite(values) & ((values != 0) | (unit != PITCH)), values, np.nan)
        if not np.isnan(values).all():
            axis.plot((np.arange(len(values)) + 0.5) * seconds, values, linewidth=1.6, alpha=0.8, label=name)
    axis.grid(axis="y", alpha=0.3)
    if axis.lines:
        axis.legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=len(curves), fontsize="small", frameon=False)
