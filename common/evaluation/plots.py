"""Plots of an utterance and its recording on one time axis: spectrograms, alignment, their difference, and pitch."""

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from common.config import AudioConfig
from common.evaluation.metrics import FLOOR_DB, SpeechComparison, SpeechFrames
from common.pages.charts import CHART_STYLE, scale_pitch
from common.plots import label_mel_axis

DB_PER_NEPER = 20 / np.log(10)  # dB of a factor e between amplitudes
LARGEST_DIFFERENCE = 30.0  # dB, the ends of the colors
LINES_EVERY = 0.05  # s between the lines of the alignment
WIDTH = 8.4  # inches
SYNTHESIZED, RECORDED = "tab:orange", "tab:blue"


def plot_speech(synthesized: SpeechFrames, comparison: SpeechComparison | None = None) -> Figure:
    """The spectrogram and pitch of an utterance; with a ``comparison`` also the recording and their difference.

    Lines lead from moments of the recording to those of the synthesized sound that they are compared with. All have
    the same time axis, so that a second is as wide in each; difference and pitches are at the synthesized one's times.
    """
    curves, spoken, heights = {"synthesized": synthesized.f0}, {"synthesized": synthesized}, {"synthesized": 1.0}
    if comparison is not None:
        spoken = {"recorded": comparison.reference, **spoken}
        heights = {"recorded": 1.0, "alignment": 0.3, "synthesized": 1.0, "difference": 1.0}
    with matplotlib.rc_context(CHART_STYLE):
        figure = Figure(figsize=(WIDTH, 3.6 if comparison is None else 7.4), layout="constrained")
        names = [*heights, "pitch"]
        axes = figure.subplot_mosaic([[name] for name in names], height_ratios=[*heights.values(), 1.0], sharex=True)
        for name, frames in spoken.items():
            image = _draw_mel(axes[name], frames.log_mel, frames)
            axes[name].set_title(name)
        _add_colorbar(image, [axes[name] for name in heights if name != "difference"])
        if comparison is not None:
            difference, curves["recorded, aligned"] = _aligned(comparison)
            limits = (-LARGEST_DIFFERENCE, LARGEST_DIFFERENCE)
            image = _draw_mel(axes["difference"], difference, synthesized, limits=limits, cmap="RdBu_r")
            axes["difference"].set_facecolor("lightgray")  # silence in both, which is not compared
            axes["difference"].set_title("synthesized less recorded, aligned to the synthesized; red: more energy")
            _add_colorbar(image, [axes["difference"]])
            _draw_alignment(axes["alignment"], comparison)
        for name in heights:
            axes[name].tick_params(labelbottom=False)
        _draw_pitch(axes["pitch"], curves, synthesized.hop_s)
        seconds = max(len(frames.f0) * frames.hop_s for frames in spoken.values())
        axes["pitch"].set(xlabel="time (s)", xlim=(0, seconds))
    return figure


def _aligned(comparison: SpeechComparison) -> tuple[np.ndarray, np.ndarray]:
    """At the synthesized frames: synthesized less recorded log-mel (n_mels, F2), and the recording's F0 (F2,)."""
    reference, synthesized, partner = comparison.reference, comparison.synthesized, partners(comparison)
    paired = partner >= 0
    difference = np.full(synthesized.log_mel.shape, np.nan)
    difference[:, paired] = synthesized.log_mel[:, paired] - reference.log_mel[:, partner[paired]]
    return difference, np.where(paired, reference.f0[np.maximum(partner, 0)], 0.0)


def partners(comparison: SpeechComparison) -> np.ndarray:
    """For each synthesized frame (F2,) the frame of the reference paired with it, the middle one of several, or -1."""
    found = np.full(len(comparison.synthesized.f0), -1)
    pairs = comparison.pairs[np.argsort(comparison.pairs[:, 1], kind="stable")]
    frames, starts, counts = np.unique(pairs[:, 1], return_index=True, return_counts=True)
    found[frames] = pairs[starts + counts // 2, 0]
    return found


def _draw_mel(
    axis: Axes,
    log_mel: np.ndarray,
    frames: SpeechFrames,
    *,
    limits: tuple[float, float] = (-FLOOR_DB, 0.0),
    cmap: str = "magma",
) -> AxesImage:
    """log_mel (n_mels, F), at the times and frequencies of ``frames``, in dB between ``limits``."""
    n_mels, n_frames = log_mel.shape
    extent = (-frames.hop_s / 2, (n_frames - 0.5) * frames.hop_s, 0, n_mels)  # frame i is centered at i hops
    image = axis.imshow(
        log_mel * DB_PER_NEPER, aspect="auto", origin="lower", interpolation="none", extent=extent, cmap=cmap
    )
    image.set_clim(*limits)
    label_mel_axis(axis.yaxis, AudioConfig(n_mels=n_mels, mel_fmax=frames.fmax))
    return image


def _add_colorbar(image: AxesImage, axes: list[Axes]) -> None:
    bar = axes[0].figure.colorbar(image, ax=axes, label="dB", pad=0.01, fraction=0.03, aspect=12 * len(axes))
    assert bar.solids is not None, "an image has colors"
    bar.solids.set_rasterized(True)  # one picture instead of 256 shapes
    bar.outline.set_visible(False)


def _draw_alignment(axis: Axes, comparison: SpeechComparison) -> None:
    """Lines from moments of the recording, above, to the synthesized moments that they are compared with, below."""
    hops = np.array([comparison.reference.hop_s, comparison.synthesized.hop_s])
    times = comparison.pairs * hops
    step = max(1, round(LINES_EVERY / hops[1]))
    _, first = np.unique(comparison.pairs[:, 1] // step, return_index=True)
    ends = np.pad(times[first], ((0, 0), (0, 1)), constant_values=np.nan).ravel()  # a gap after each line
    axis.plot(ends, np.tile([1, 0, np.nan], len(first)), color="gray", linewidth=0.6)
    axis.set_ylim(0, 1)
    axis.set_yticks([])
    axis.spines[:].set_visible(False)
    axis.tick_params(bottom=False)


def _draw_pitch(axis: Axes, curves: dict[str, np.ndarray], hop_s: float) -> None:
    """Curves in Hz on a scale of equal intervals; unvoiced frames are gaps; a curve without others is left out."""
    voiced = {name: f0 for name, f0 in curves.items() if (f0 > 0).any()}
    for (name, f0), color in zip(curves.items(), (SYNTHESIZED, RECORDED)):
        if name in voiced:
            times = np.arange(len(f0)) * hop_s
            axis.plot(times, np.where(f0 > 0, f0, np.nan), color=color, label=name, linewidth=1.8)
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
