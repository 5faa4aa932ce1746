"""Describe a training's progress in words, from its validation metrics."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

PATIENCE = 5  # validations without a gain before a metric counts as stalled; twice as many once aligned
GAIN = 0.03  # relative improvement that counts as a gain while there is no alignment and losses fall fast
RISE = 0.02  # relative rise above the best value, for `PATIENCE` validations, that counts as overfitting
LOST = 0.7  # an alignment is lost below this share of the limits for finding it
Record = Mapping[str, float]  # ``epoch``, ``train_loss`` and one validation's figures, such as ``val_loss``


@dataclass(frozen=True)
class Aligned:
    """The limits at which a model's attention counts as an alignment of text and speech."""

    diagonality: float
    unattended: float = 1.0  # maximum share of symbols that are no frame's argmax


def describe_training(
    history: Sequence[Record], *, metric: str, aligned: Aligned | None, best_kept: int | None, adversarial: bool = False
) -> str:
    """Describe a training in one line after its last validation; epoch 0 validates the initial weights.

    ``metric`` selects the best checkpoint, that of epoch ``best_kept``. ``adversarial`` losses say little.
    """
    last, parts, found = history[-1], [], True
    starts_from_voice = history[0]["epoch"] == 0
    diagonality, unattended = _attention(last)
    if aligned is not None and diagonality is not None:
        found = has_alignment(history, aligned)
        initial = _attention(history[0])[0] if starts_from_voice and not found else None
        figures = f"diagonality {round(diagonality, 2) + 0.0:.2f}"
        figures += "" if initial is None else f", initially {round(initial, 2) + 0.0:.2f}"
        figures += "" if unattended is None else f", unattended phones {100 * unattended:.0f} %"
        # The initial voice's aligner may find durations in new recordings although its attention isn't sharp.
        parts = [f"{'alignment found' if found else 'no alignment yet'} ({figures})" if initial is None else figures]
    if starts_from_voice and None not in (pair := [find_figure(history[0], metric), find_figure(last, metric)]):
        parts += [f"{metric} {pair[1]:.2f}, initially {pair[0]:.2f}"]
    parts += _trend(history, metric, is_aligned=found, best_kept=best_kept, adversarial=adversarial)
    return f"epoch {last['epoch']:.0f}: {'; '.join(parts)}" if parts else ""


def has_alignment(history: Sequence[Record], aligned: Aligned) -> bool:
    """Whether attention has found an alignment and not lost it since.

    If the initial weights are aligned, more symbols may be unattended, since a new voice's clips may lack some.
    """
    first, unread = _attention(history[0]) if history else (None, None)
    starts_aligned = first is not None and history[0]["epoch"] == 0 and first >= aligned.diagonality
    limit = max(aligned.unattended, (unread or 0.0) / LOST) if starts_aligned else aligned.unattended
    found = False
    for diagonality, unattended in map(_attention, history):
        share = LOST if found else 1.0
        found = (diagonality or 0.0) >= share * aligned.diagonality and (unattended or 0.0) <= limit / share
    return found


def validations_since_best(history: Sequence[Record], metric: str) -> int:
    """Return how many validations ago ``metric`` was best."""
    values = _figures(history, metric)
    return len(values) - 1 - values.index(min(values)) if values else 0


def _trend(
    history: Sequence[Record], metric: str, *, is_aligned: bool, best_kept: int | None, adversarial: bool
) -> list[str]:
    """Describe the trend of ``metric``; return nothing if it is too early to tell."""
    gain = 0.0 if is_aligned else GAIN
    values, losses = _figures(history, metric), _figures(history, "loss")
    gains = [_last_gain(values, gain), _last_gain(losses, gain)]  # error rates stay at 100 % at first
    if not all(stalls for _, stalls in gains):
        return ["still improving"] if any(index > 0 for index, _ in gains) else []
    _, loss_stalls = _last_gain([record.get("train_loss", math.inf) for record in history], gain)
    best = values.index(min(values))
    if not loss_stalls and len(values) - 1 - best < PATIENCE:
        return ["still improving"]
    since = f"since epoch {history[gains[0][0] if loss_stalls else best]['epoch']:.0f}"
    since += "" if best_kept is None else f", the best is kept (epoch {best_kept})"
    if adversarial:
        return [f"{metric} has not improved {since}: the sound may still be improving, so listen to it"]
    limit = values[best] + RISE * abs(values[best])
    has_risen = any(min(values[n - PATIENCE : n]) > limit for n in range(best + PATIENCE + 1, len(values) + 1))
    if loss_stalls:
        what = "no" if is_aligned else "hardly any"
        advice = ", and the training loss has stalled: lower --learning-rate" if has_risen or not is_aligned else ""
        return [f"{what} improvement {since}{advice}"]
    if not has_risen:
        return [f"validation has not improved {since}, while the training loss falls"]
    return [f"overfitting {since}" + ("" if is_aligned else ": too few clips, or transcripts that don't match")]


def _last_gain(values: Sequence[float], gain: float) -> tuple[int, bool]:
    """Return the index of the last of ``values`` that improved by ``gain``, and whether it is too long ago.

    A metric that improves again after stalling gets twice as much time from then on, so that the answer doesn't flip.
    """
    best, last, patience = math.inf, 0, PATIENCE if gain else 2 * PATIENCE
    for index, value in enumerate(values):
        if value < (best if math.isinf(best) else best - gain * abs(best)):
            patience = 2 * (index - last) if index - last > patience else patience
            best, last = value, index
    return last, len(values) - 1 - last >= patience


def _attention(record: Record) -> tuple[float | None, float | None]:
    """Return the diagonality and the share of unattended symbols."""
    return find_figure(record, "attention_diagonality"), find_figure(record, "unattended_tokens")


def _figures(history: Sequence[Record], metric: str) -> list[float]:
    """Return a metric's value in each validation, infinite if missing."""
    values = (find_figure(record, metric) for record in history)
    return [math.inf if value is None or math.isnan(value) else value for value in values]


def find_figure(figures: Record, name: str) -> float | None:
    """Return the figure with this ``name``; without a subset, the one for the EMA weights if there are any."""
    names = (name, f"val_ema_{name}", f"val_{name}")
    return next((figures[one] for one in names if one in figures), None)
