"""Figures of mel-spectrograms, pitch and durations, drawn without a display."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from torch import Tensor

from common.errors import InputError
from common.files import write_atomically

WIDTH = 10.0  # inches
WIDTH_PER_SECOND = 2.0  # inches of a spectrogram with symbols above it
MAX_WIDTH = 30.0  # inches
COLORBAR = 0.35  # inches of the figure's width
DPI = 100  # dots an inch
MAX_LABELS = 120  # symbols under an utterance; more would overlap at this width
LINE_STYLES = ("-", "--", ":", "-.")  # by curve, so that equal ones can both be seen


def plot_mels(
    mels: dict[str, Tensor], *, title: str = "", hop_length: int | None = None, sampling_rate: int | None = None
) -> Figure:
    """Log-mel-spectrograms, each ``(n_mels, F)``, one above the other with one color range and one time axis.

    The time axis is in seconds where ``hop_length`` (samples) and ``sampling_rate`` (Hz) are given, else in frames.
    """
    seconds = hop_length / sampling_rate if hop_length and sampling_rate else None
    arrays = {name: to_array(mel) for name, mel in mels.items()}
    figure = _figure(0.6 + 2.4 * len(arrays))
    axes = list(figure.subplots(len(arrays), 1, sharex=True, squeeze=False)[:, 0])
    colors = _color_range(*arrays.values())
    for axis, (name, array) in zip(axes, arrays.items()):
        image = _draw_mel(axis, array, seconds=seconds, colors=colors)
        axis.set_title(_plain(name), loc="left", fontsize="medium")
    longest = max(array.shape[1] for array in arrays.values())
    axes[-1].set_xlim(0, longest * (seconds or 1))
    axes[-1].set_xlabel("time (s)" if seconds else "time (frames)")
    figure.colorbar(image, ax=axes, label="log amplitude", fraction=COLORBAR / WIDTH, pad=0.01)
    if title:
        figure.suptitle(_plain(title))
    return figure


def plot_curves(
    curves: dict[str, Tensor], *, title: str = "", labels: Sequence[str] = (), ylabel: str = "", gaps: bool = False
) -> Figure:
    """Curves ``(L,)`` over the same tokens, such as target and predicted pitch or durations.

    ``labels`` are the tokens' symbols, drawn under the axis where there is room. ``gaps`` leaves zeros out
    instead of drawing them: an unvoiced token has no pitch, not a pitch of 0.
    """
    figure = _figure(3.2)
    axis = figure.subplots()
    longest = 0
    for (name, curve), style in zip(curves.items(), itertools.cycle(LINE_STYLES)):
        values = to_array(curve).astype(np.float64)
        if gaps:
            values = np.where(values == 0, np.nan, values)
        axis.plot(np.arange(len(values)), values, style, marker="o", markersize=3, linewidth=1.2, label=_plain(name))
        longest = max(longest, len(values))
    axis.set_xlim(-0.5, max(longest, 1) - 0.5)
    axis.set_xlabel("token")
    axis.set_ylabel(ylabel)
    if labels and len(labels) <= MAX_LABELS:
        axis.set_xticks(np.arange(len(labels)), [_visible(label) for label in labels], fontsize="small")
        axis.set_xlabel("")
    axis.grid(alpha=0.3)
    axis.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(curves), fontsize="small", frameon=False)
    axis.set_title(_plain(title), loc="left", fontsize="medium")
    return figure


def plot_alignment(alignment: Tensor, *, title: str = "", labels: Sequence[str] = ()) -> Figure:
    """Attention's weights ``(F, L)`` of each mel frame, with time to the right and the text upwards.

    ``labels`` are the tokens' symbols, drawn next to the axis where there is room.
    """
    weights = to_array(alignment).T
    figure = _figure(4.2)
    axis = figure.subplots()
    image = axis.imshow(weights, aspect="auto", origin="lower", interpolation="none", vmin=0, vmax=1, cmap="viridis")
    axis.set_xlabel("time (frames)")
    axis.set_ylabel("token")
    if labels and len(labels) == len(weights) <= MAX_LABELS:
        axis.set_yticks(np.arange(len(labels)), [_visible(label) for label in labels], fontsize="small")
        axis.set_ylabel("")
    figure.colorbar(image, ax=axis, label="weight", fraction=COLORBAR / WIDTH, pad=0.01)
    axis.set_title(_plain(title), loc="left", fontsize="medium")
    return figure


def plot_utterance(
    mel: Tensor,
    *,
    pitch: Tensor | None = None,
    durations: Tensor | None = None,
    labels: Sequence[str] = (),
    hop_length: int,
    sampling_rate: int,
    title: str = "",
) -> Figure:
    """One utterance: its log-mel-spectrogram, its pitch over it, and its symbols along the time axis.

    ``mel (n_mels, F)``; ``pitch (F,)`` in Hz with 0 where unvoiced; ``durations (L,)`` in frames with one of the
    L ``labels`` each. ``hop_length`` in samples, ``sampling_rate`` in Hz.
    """
    seconds = hop_length / sampling_rate
    array = to_array(mel)
    width = min(max(WIDTH, WIDTH_PER_SECOND * array.shape[1] * seconds), MAX_WIDTH)
    figure = _figure(4.2, width=width)
    axis = figure.subplots()
    image = _draw_mel(axis, array, seconds=seconds, colors=_color_range(array))
    axis.set_xlim(0, array.shape[1] * seconds)
    axis.set_xlabel("time (s)")
    axis.set_title(_plain(title), loc="left", fontsize="medium")
    axes = [axis]
    if pitch is not None:
        axes.append(_draw_pitch(axis, to_array(pitch), seconds=seconds))
    if durations is not None:
        _draw_symbols(axis, to_array(durations), labels, seconds=seconds)
    figure.colorbar(image, ax=axes, label="log amplitude", fraction=COLORBAR / width, pad=0.01)
    return figure


def save_png(figure: Figure, path: Path) -> None:
    """Write ``figure`` as a PNG; a file that is there already is replaced completely or not at all.

    Raises InputError if the file cannot be written.
    """
    try:
        write_atomically(path, lambda file: figure.savefig(file, format="png"), durable=False)
    except OSError as error:
        raise InputError(f"{path}: cannot write the picture ({error.strerror})") from error


def to_image(figure: Figure) -> np.ndarray:
    """The drawn figure as ``(height, width, 3)`` uint8."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def to_array(tensor: Tensor) -> np.ndarray:
    """A tensor of any device and dtype as a numpy array (bfloat16, which numpy lacks, as float32)."""
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor).numpy()


def _figure(height: float, *, width: float = WIDTH) -> Figure:
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def _color_range(*arrays: np.ndarray) -> tuple[float, float]:
    """The least and the greatest finite value."""
    finite = np.concatenate([array[np.isfinite(array)] for array in arrays])
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)


def _draw_mel(axis: Axes, mel: np.ndarray, *, seconds: float | None, colors: tuple[float, float]) -> AxesImage:
    n_mels, n_frames = mel.shape
    extent = (0, n_frames * (seconds or 1), 0, n_mels)
    image = axis.imshow(mel, aspect="auto", origin="lower", interpolation="none", extent=extent, cmap="magma")
    image.set_clim(*colors)
    axis.set_ylabel("mel channel")
    return image


def _draw_pitch(axis: Axes, pitch: np.ndarray, *, seconds: float) -> Axes:
    """Pitch in Hz on an axis of its own at the right, which is returned; unvoiced frames are left out."""
    voiced = np.where(pitch > 0, pitch, np.nan)
    right = axis.twinx()
    times = (np.arange(len(pitch)) + 0.5) * seconds
    # Cyan on black can be seen on the bright parts of the spectrogram as on the dark ones.
    right.plot(times, voiced, color="black", linewidth=4, solid_capstyle="round")
    right.plot(times, voiced, color="cyan", linewidth=2, solid_capstyle="round")
    if np.isfinite(voiced).any():
        right.set_ylim(0, 1.6 * float(np.nanmax(voiced)))
    else:
        right.set_yticks([])
    right.set_ylabel("pitch (Hz)")
    return right


def _draw_symbols(axis: Axes, durations: np.ndarray, labels: Sequence[str], *, seconds: float) -> None:
    """A thin line at each symbol's start and the symbol above its middle."""
    ends = np.cumsum(durations)
    starts = ends - durations
    inside = starts[(durations > 0) & (starts > 0)]
    axis.vlines(inside * seconds, 0, 1, transform=axis.get_xaxis_transform(), color="white", alpha=0.35, linewidth=0.6)
    if len(labels) != len(durations):
        return
    top = axis.secondary_xaxis("top")
    shown = [index for index in range(len(labels)) if durations[index] > 0]
    middles = [(starts[index] + durations[index] / 2) * seconds for index in shown]
    top.set_xticks(middles, [_visible(labels[index]) for index in shown], fontsize="small")
    top.tick_params(length=0)


def _visible(label: str) -> str:
    """A symbol as it can be seen: a space as the open box."""
    return "\u2423" if label == " " else _plain(label)


def _plain(text: str) -> str:
    """Text whose dollar signs matplotlib does not read as mathematics."""
    return text.replace("$", r"\$")
