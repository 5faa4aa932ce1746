"""Plots of an utterance and its recording on one time axis: spectrograms, alignment, their difference, and pitch."""

from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from common.config import AudioConfig
from common.evaluation.metrics import FLOOR_DB, Clip, SpeechComparison
from common.pages.charts import CHART_STYLE, scale_pitch
from common.plots import label_mel_axis

DB_PER_NEPER = 20 / np.log(10)  # dB of a factor e between amplitudes
LARGEST_DIFFERENCE = 30.0  # dB, the ends of the colors
LINES_EVERY = 0.05  # s between the lines of the alignment
WIDTH = 8.4  # inches
HEIGHTS = {"recorded": 1.0, "alignment": 0.3, "synthesized": 1.0, "difference": 1.0, "pitch": 1.0}  # of panels
COLORS = {"synthesized": "tab:orange", "recorded, aligned": "tab:blue"}


@matplotlib.rc_context(CHART_STYLE)
def plot_speech(synthesized: Clip, comparison: SpeechComparison | None = None) -> Figure:
    """The spectrogram and pitch of an utterance; with a ``comparison`` also the recording and their difference.

    Lines lead from moments of the recording to those of the synthesized sound that they are compared with. All have
    the same time axis, so that a second is as wide in each; difference and pitches are at the synthesized one's times.
    """
    figure = Figure(figsize=(WIDTH, 3.6 if comparison is None else 7.4), layout="constrained")
    names = ["synthesized", "pitch"] if comparison is None else list(HEIGHTS)
    axes = figure.subplot_mosaic(
        [[name] for name in names], height_ratios=[HEIGHTS[name] for name in names], sharex=True
    )
    clips, curves = {"synthesized": synthesized}, {"synthesized": synthesized.f0}
    beside = [axes[name] for name in names if name not in ("difference", "pitch")]  # a bar of colors that they share
    if comparison is not None:
        clips["recorded"] = comparison.reference
        difference, curves["recorded, aligned"] = _differences(comparison)
        axes["difference"].set_facecolor("lightgray")  # silence in both, which is not compared
        axes["difference"].set_title("synthesized less recorded, aligned to the synthesized; red: more energy")
        largest = {"vmin": -LARGEST_DIFFERENCE, "vmax": LARGEST_DIFFERENCE, "cmap": "RdBu_r"}
        _draw_mel(axes["difference"], difference, synthesized, bar=[axes["difference"]], **largest)
        _draw_alignment(axes["alignment"], comparison)
    for name, clip in clips.items():
        bar = beside if name == "synthesized" else []
        _draw_mel(axes[name], clip.log_mel, clip, bar=bar, vmin=-FLOOR_DB, vmax=0.0, cmap="magma")
        axes[name].set_title(name)
    for name in names[:-1]:
        axes[name].tick_params(labelbottom=False)
    _draw_pitch(axes["pitch"], curves, synthesized.hop_s)
    axes["pitch"].set(xlabel="time (s)", xlim=(0, max(len(clip.f0) * clip.hop_s for clip in clips.values())))
    return figure


def _differences(comparison: SpeechComparison) -> tuple[np.ndarray, np.ndarray]:
    """At the synthesized frames: synthesized less recorded log-mel (n_mels, F2), and the recording's F0 (F2,)."""
    reference, synthesized, partner = comparison.reference, comparison.synthesized, partners(comparison)
    difference = np.where(partner >= 0, synthesized.log_mel - reference.log_mel[:, partner], np.nan)
    return difference, np.where(partner >= 0, reference.f0[partner], 0.0)


def partners(comparison: SpeechComparison) -> np.ndarray:
    """For each synthesized frame (F2,) the frame of the reference paired with it, the middle one of several, or -1."""
    found = np.full(len(comparison.synthesized.f0), -1)
    pairs = comparison.pairs[np.argsort(comparison.pairs[:, 1], kind="stable")]
    frames, starts, counts = np.unique(pairs[:, 1], return_index=True, return_counts=True)
    found[frames] = pairs[starts + counts // 2, 0]
    return found


def _draw_mel(axis: Axes, log_mel: np.ndarray, clip: Clip, *, bar: list[Axes], **colors: Any) -> None:
    """log_mel (n_mels, F) in dB, at the times and frequencies of ``clip``, with its colors beside the axes ``bar``."""
    n_mels, n_frames = log_mel.shape
    extent = (-clip.hop_s / 2, (n_frames - 0.5) * clip.hop_s, 0, n_mels)  # frame i is centered at i hops
    look: dict[str, Any] = {"origin": "lower", "aspect": "auto", "interpolation": "none", "extent": extent}
    image = axis.imshow(log_mel * DB_PER_NEPER, **look, **colors)
    label_mel_axis(axis.yaxis, AudioConfig(n_mels=n_mels, mel_fmax=clip.fmax))
    if bar:
        explained = axis.figure.colorbar(image, ax=bar, label="dB", pad=0.01, fraction=0.03, aspect=12 * len(bar))
        explained.solids.set_rasterized(True)  # type: ignore[union-attr]  # one picture instead of 256 shapes
        explained.outline.set_visible(False)


def _draw_alignment(axis: Axes, comparison: SpeechComparison) -> None:
    """Lines from moments of the recording, above, to the synthesized moments that they are compared with, below."""
    hops = np.array([comparison.reference.hop_s, comparison.synthesized.hop_s])
    times = comparison.pairs * hops
    step = max(1, round(LINES_EVERY / hops[1]))
    _, first = np.unique(comparison.pairs[:, 1] // step, return_index=True)
    ends = np.pad(times[first], ((0, 0), (0, 1)), constant_values=np.nan).ravel()  # a gap after each line
    axis.plot(ends, np.tile([1, 0, np.nan], len(first)), color="gray", linewidth=0.6)
    axis.set(ylim=(0, 1), yticks=[])
    axis.spines[:].set_visible(False)
    axis.tick_params(bottom=False)


def _draw_pitch(axis: Axes, curves: dict[str, np.ndarray], hop_s: float) -> None:
    """Curves in Hz on a scale of equal intervals; unvoiced frames are gaps; a curve without others is left out."""
    voiced = {name: f0 for name, f0 in curves.items() if (f0 > 0).any()}
    for name, f0 in voiced.items():
        values = np.where(f0 > 0, f0, np.nan)
        axis.plot(np.arange(len(f0)) * hop_s, values, color=COLORS[name], label=name, linewidth=1.8)
    axis.set(ylabel="F0 (Hz)", title="pitch" if voiced else "pitch: nothing is voiced")
    axis.grid()
    if not voiced:
        axis.set_yticks([])
        return
    values = np.concatenate([f0[f0 > 0] for f0 in voiced.values()])
    scale_pitch(axis, "y")
    axis.set_ylim(0.9 * values.min(), 1.1 * values.max())
    if len(curves) > 1:
        axis.legend(loc="lower right", bbox_to_anchor=(1, 0.98), ncols=len(voiced), borderaxespad=0)
