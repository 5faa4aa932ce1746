"""Plots of an utterance and its recording: spectrograms, their difference, pitch, and the alignment."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from common.evaluation.metrics import FLOOR_DB, SpeechComparison, SpeechFrames

DB_PER_NEPER = 20 / np.log(10)  # dB of a factor e between amplitudes
F0_TICKS = (60, 70, 80, 90, 100, 110, 120, 135, 150, 165, 180, 200, 220, 250, 280, 320, 360, 400, 450, 500)  # Hz
LARGEST_DIFFERENCE = 30.0  # dB, the ends of the colors
SYNTHESIZED, RECORDED = "tab:orange", "tab:blue"


def plot_comparison(comparison: SpeechComparison) -> Figure:
    """Both spectrograms; on the synthesized one's time axis, their difference and both pitches; the alignment path."""
    reference, synthesized = comparison.reference, comparison.synthesized
    figure = Figure(figsize=(11.0, 8.6), dpi=80, layout="constrained")
    axes = figure.subplot_mosaic(
        [["synthesized", "path"], ["recorded", "path"], ["difference", "difference"], ["pitch", "pitch"]],
        width_ratios=(2.2, 1.0),
        height_ratios=(1, 1, 1, 1.1),
    )
    for name, frames in (("synthesized", synthesized), ("recorded", reference)):
        _draw_mel(axes[name], frames.log_mel, hop_s=frames.hop_s, title=name)
    partner = partners(comparison)
    paired = partner >= 0
    difference = np.full(synthesized.log_mel.shape, np.nan)
    difference[:, paired] = synthesized.log_mel[:, paired] - reference.log_mel[:, partner[paired]]
    title, limits = "synthesized less recorded, aligned", (-LARGEST_DIFFERENCE, LARGEST_DIFFERENCE)
    _draw_mel(axes["difference"], difference, hop_s=synthesized.hop_s, title=title, limits=limits, cmap="RdBu_r")
    axes["difference"].set_facecolor("lightgray")  # silence in both, which is not compared
    warped = np.where(paired, reference.f0[np.maximum(partner, 0)], 0.0)
    _draw_pitch(axes["pitch"], {"synthesized": synthesized.f0, "recorded, aligned": warped}, hop_s=synthesized.hop_s)
    _draw_path(axes["path"], comparison)
    return figure


def plot_alone(frames: SpeechFrames) -> Figure:
    """The spectrogram and pitch of an utterance without a recording."""
    figure = Figure(figsize=(11.0, 4.6), dpi=80, layout="constrained")
    mel, pitch = figure.subplots(2, 1)
    _draw_mel(mel, frames.log_mel, hop_s=frames.hop_s, title="synthesized")
    _draw_pitch(pitch, {"synthesized": frames.f0}, hop_s=frames.hop_s)
    return figure


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
    *,
    hop_s: float,
    title: str,
    limits: tuple[float, float] = (-FLOOR_DB, 0.0),
    cmap: str = "magma",
) -> None:
    """log_mel (n_mels, F) as an image in dB between ``limits``; frame i is centered at i hops."""
    n_mels, n_frames = log_mel.shape
    extent = (-hop_s / 2, (n_frames - 0.5) * hop_s, 0, n_mels)
    image = axis.imshow(
        log_mel * DB_PER_NEPER, aspect="auto", origin="lower", interpolation="none", extent=extent, cmap=cmap
    )
    image.set_clim(*limits)
    axis.figure.colorbar(image, ax=axis, label="dB", pad=0.01)
    axis.set_ylabel("mel channel")
    axis.set_title(title, loc="left", fontsize="medium")


def _draw_pitch(axis: Axes, curves: dict[str, np.ndarray], *, hop_s: float) -> None:
    """Curves in Hz on a scale of equal intervals; unvoiced frames are gaps."""
    for (name, f0), color in zip(curves.items(), (SYNTHESIZED, RECORDED)):
        axis.plot(np.arange(len(f0)) * hop_s, np.where(f0 > 0, f0, np.nan), color=color, label=name, linewidth=1.5)
    longest = max(map(len, curves.values()))
    axis.set_xlim(-hop_s / 2, (longest - 0.5) * hop_s)
    voiced = np.concatenate([f0[f0 > 0] for f0 in curves.values()])
    if len(voiced):
        low, high = 0.9 * voiced.min(), 1.1 * voiced.max()
        axis.set_yscale("log", base=2)
        axis.set_ylim(low, high)
        ticks = [tick for tick in F0_TICKS if low <= tick <= high]
        axis.set_yticks(ticks, [str(tick) for tick in ticks])
        axis.minorticks_off()
    axis.set(xlabel="time (s)", ylabel="F0 (Hz)")
    axis.set_title("pitch", loc="left", fontsize="medium")
    axis.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(curves), fontsize="small", frameon=False)
    axis.grid(alpha=0.3)


def _draw_path(axis: Axes, comparison: SpeechComparison) -> None:
    """The pairs of frames, and the line on which they would lie at a constant pace."""
    hops = np.array([comparison.reference.hop_s, comparison.synthesized.hop_s])
    times = comparison.pairs * hops
    axis.plot(times[:, 1], times[:, 0], ".", color="black", markersize=2.5)
    axis.plot(times[[0, -1], 1], times[[0, -1], 0], color="gray", linewidth=0.8, linestyle="--", zorder=0)
    axis.set(xlabel="synthesized (s)", ylabel="recorded (s)")
    axis.set_title("alignment", loc="left", fontsize="medium")
    axis.grid(alpha=0.3)
