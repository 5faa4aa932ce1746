"""Orders texts for a corpus so that the first ones cover phones and pairs of phones."""

import heapq
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import fsum

from common.errors import InputError
from common.progress import progress
from common.text.front_end import TextFrontEnd
from common.text.options import TextOptions, text_config

SYMBOLS_PER_MINUTE = 16 * 60  # of the set `espeak`, at the speaking rate of LJSpeech
_MARK_WEIGHT = 3  # of a question or exclamation, in pairs of phones, as there are few and their intonation differs


def find_phones(texts: Mapping[str, str], *, language: str) -> dict[str, list[str]]:
    """Return the symbols of the set `espeak` for each text; texts that can't be read are reported on stderr."""
    front_end = TextFrontEnd(text_config(TextOptions(g2p_language=language)), unknown_symbols="drop")
    phones: dict[str, list[str]] = {}
    for name, text in progress(texts.items(), desc="phones", unit="line"):
        try:
            phones[name] = [front_end.symbols[one] for one in front_end.encode(text, where=name)]
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
    return phones


def choose_texts(phones: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the ids of texts in an order that covers phones, pairs of phones, questions and exclamations early.

    The next text is the one with the most rare units for its length; a unit counts less each time it is chosen.
    """
    units: dict[str, set[str | tuple[str, str]]] = {name: {*row, *pairwise(row)} for name, row in phones.items()}
    chosen: Counter[str | tuple[str, str]] = Counter()

    def worth(name: str) -> float:
        values = (1 / (1 + chosen[unit]) ** 2 for unit in units[name])
        marks = (_MARK_WEIGHT / (1 + chosen[mark]) ** 0.5 for mark in "?!" if mark in units[name])
        return fsum((*values, *marks)) / len(phones[name])  # exact in any order; a set's order varies between runs

    heap = [(-worth(name), place, name) for place, name in enumerate(units)]
    heapq.heapify(heap)
    order: list[str] = []
    while heap:
        _, place, name = heapq.heappop(heap)
        entry = (-worth(name), place, name)
        if heap and heap[0] < entry:
            heapq.heappush(heap, entry)
        else:  # worth never rises, so a text that still leads with its current worth is the best
            order.append(name)
            chosen.update(units[name])
    return order
