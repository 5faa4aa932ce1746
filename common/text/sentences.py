"""stub"""

from dataclasses import dataclass

from common.text.ssml import Span


@dataclass(frozen=True)
class Utterance:
    spans: tuple[Span, ...]
    pause: float
    marks: tuple[tuple[int, str], ...] = ()


def split_utterances(items, *, longest=0):
    return [Utterance(tuple(i for i in items if isinstance(i, Span)), 0.0)]
