"""Which checkpoint is the best: by a figure of validation, whose smallest value or largest is wanted."""

import argparse
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.errors import OptionError


@dataclass(frozen=True)
class SelectionMetric:
    """A figure of validation, named as in the log, with or without its subset (``val_wer``, ``wer``)."""

    name: str = "loss"
    largest: bool = False

    def __str__(self) -> str:
        return f"{self.name}:max" if self.largest else self.name

    def value(self, figures: Mapping[str, float]) -> float | None:
        """The one of ``figures`` that is meant, if it is there; without a subset of the weights that inference uses."""
        names = (self.name, f"val_ema_{self.name}", f"val_{self.name}")
        return next((figures[name] for name in names if name in figures), None)

    def check(self, names: Sequence[str]) -> None:
        """Refuse by OptionError a metric that is not among the ``names`` of validation's figures."""
        if self.value(dict.fromkeys(names, 0.0)) is None:
            raise OptionError(f"--keep-best {self}: no figure of validation, expected one of {', '.join(names)}")

    def is_better(self, value: float | None, best: float | None) -> bool:
        """Whether there is a ``value``, better than the ``best`` one so far; nan is not."""
        if value is None or math.isnan(value):
            return False
        return best is None or (value > best if self.largest else value < best)


def selection_metric(text: str) -> SelectionMetric:
    """An ``argparse`` type: ``wer``, or ``attention_focus:max`` where larger is better."""
    name, _, direction = text.partition(":")
    if not re.fullmatch(r"[\w./ %-]{1,100}", name) or direction not in ("", "min", "max"):
        raise argparse.ArgumentTypeError(f"{text[:100]}: expected a figure of validation such as loss, or NAME:max")
    return SelectionMetric(name, direction == "max")
