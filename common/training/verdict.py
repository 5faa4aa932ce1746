"""How a training goes, in words: what the figures of its validations so far say."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.training.options import SelectionMetric

PATIENCE = 5  # validations that are compared with all before them
GAIN = 0.01  # share of the best figure before them by which a training that improves is better
FALL = 0.03  # share by which the loss of training has fallen since then where a network still learns
RISE = 0.02  # share of the best figure by which each of them is worse where a network overfits or diverges
_OF_ATTENTION = ("attention_diagonality", "unattended_tokens")
Record = Mapping[str, float]  # ``epoch``, ``train_loss`` and the figures of one validation with their subsets


@dataclass(frozen=True)
class Aligned:
    """What a model's attention must reach to be called an alignment of text and speech."""

    diagonality: float
    unattended: float = 1.0  # largest share of symbols that no frame attends to most


def describe_training(
    history: Sequence[Record],
    *,
    metric: SelectionMetric,
    aligned: Aligned | None,
    best_kept: int | None,
    seconds_left: float,
    adversarial: bool = False,
) -> str:
    """Say in one line how a training goes whose last validation is the last of ``history``.

    ``metric`` is the figure that says which checkpoint is the best, and ``best_kept`` the epoch of that checkpoint.
    The losses of ``adversarial`` networks say little of their sound.
    """
    last = history[-1]
    diagonality, unattended = (SelectionMetric(name).value(last) for name in _OF_ATTENTION)
    parts, is_aligned = [], True
    if aligned is not None and diagonality is not None:
        is_aligned = diagonality >= aligned.diagonality and (unattended or 0.0) <= aligned.unattended
        figures = f"diagonality {round(diagonality, 2) + 0.0:.2f}"
        figures += "" if unattended is None else f", unattended phones {100 * unattended:.0f} %"
        parts = [f"{'alignment found' if is_aligned else 'no alignment yet'} ({figures})"]
    parts += _trend(history, metric, is_aligned=is_aligned, best_kept=best_kept, adversarial=adversarial)
    parts += [f"time left {duration(seconds_left)}"] if seconds_left > 0 else []
    return f"epoch {last['epoch']:.0f}: {'; '.join(parts)}" if parts else ""


def _trend(
    history: Sequence[Record], metric: SelectionMetric, *, is_aligned: bool, best_kept: int | None, adversarial: bool
) -> list[str]:
    """What becomes of the figure to select by; nothing where it is too early to tell."""
    values = _figures(history, metric)
    if _improves(values) or _improves(_figures(history, SelectionMetric())):  # error rates stay at 100 % at first
        return ["still improving"]
    if len(values) <= PATIENCE:
        return []
    best = min(range(len(values) - PATIENCE), key=values.__getitem__)
    since = f"since epoch {history[best]['epoch']:.0f}"
    since += "" if best_kept is None else f", the best is kept (epoch {best_kept})"
    if adversarial:
        return [f"{metric.name} no longer improves {since}: discriminators may still improve the sound, listen to it"]
    before, recent = values[best], min(values[-PATIENCE:])
    trained, has_risen = history[best]["train_loss"], recent > before + RISE * abs(before)
    learns = history[-1]["train_loss"] < trained - FALL * abs(trained)
    reason = "" if is_aligned else ": too few clips, or transcripts that do not fit"
    if not learns and (has_risen or not is_aligned):
        reason = ", in training either: lower --learning-rate"
    return [f"{'overfitting' if has_risen and learns else 'no longer improving'} {since}{reason}"]


def _figures(history: Sequence[Record], metric: SelectionMetric) -> list[float]:
    """A figure of all validations, the better the smaller; infinite where there is none."""
    values = [math.inf if value is None or math.isnan(value) else value for value in map(metric.value, history)]
    return [-value if metric.largest else value for value in values]


def _improves(values: Sequence[float]) -> bool:
    """Whether the last of ``values`` are smaller than all before them."""
    if len(values) <= PATIENCE:
        return min(values) < values[0]
    before = min(values[:-PATIENCE])
    return min(values[-PATIENCE:]) < before - GAIN * abs(before)


def duration(seconds: float) -> str:
    """Seconds as 1 h 20 min, 12 min or 40 s."""
    minutes = round(seconds / 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes} min" if seconds >= 60 else f"{seconds:.0f} s"
