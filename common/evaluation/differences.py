"""How far the averages of two systems are apart, with intervals by a paired bootstrap over the utterances."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from common.pages.tables import Measure

N_SAMPLES = 5000  # sets of utterances that are drawn
CONFIDENCE = 95  # %
SEED = 0

Figures = Mapping[str, float]  # of an utterance, by keys of measures and of their weights


@dataclass(frozen=True)
class Difference:
    """The mean of one system less that of another, and its interval."""

    value: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0

    def show(self, measure: Measure) -> str:
        """The difference as text, with an asterisk if it is clear."""
        signed = replace(measure, form=f"+{measure.form}".replace("++", "+"))
        value, low, high = (signed.show(one) for one in (self.value, self.low, self.high))
        return f"{value} ({low} to {high}){'*' if self.is_clear else ''}"


def find_difference(measure: Measure, pairs: Sequence[tuple[Figures, Figures]]) -> Difference | None:
    """The difference of a measure's averages over pairs of figures of the same utterances, first less second.

    Utterances are drawn with replacement, both sides together (Bisani and Ney 2004). None for fewer than two pairs
    that have the figure.
    """
    known = [pair for pair in pairs if all(measure.key in one for one in pair)]
    if len(known) < 2:
        return None
    drawn = np.random.default_rng(SEED).multinomial(len(known), np.full(len(known), 1 / len(known)), size=N_SAMPLES)
    counts = np.vstack([np.ones(len(known)), drawn])  # the first set is that of all utterances: (1 + N_SAMPLES, N)
    means = []
    for side in zip(*known):
        values = np.array([one[measure.key] for one in side])
        weights = np.array([one[measure.weight] if measure.weight else 1.0 for one in side])
        means.append(counts @ (values * weights) / (counts @ weights))
    value, *samples = means[0] - means[1]
    low, high = np.percentile(samples, [(100 - CONFIDENCE) / 2, (100 + CONFIDENCE) / 2])
    return Difference(float(value), float(low), float(high))


def find_differences(
    measures: Iterable[Measure], own: Mapping[str, Figures], other: Mapping[str, Figures]
) -> dict[str, Difference]:
    """Differences of a system from another by the keys of the measures that have a better side.

    Figures are by the utterances' names.
    """
    pairs = [(figures, other[name]) for name, figures in own.items() if name in other]
    found = ((one.key, find_difference(one, pairs)) for one in measures if one.better)
    return {key: one for key, one in found if one is not None}
