"""Orders texts so that the first ones hold all phones and pairs of phones: what a corpus should begin with.

    python -m scripts.datasets.choose_texts texts.txt -o chosen.txt --minutes 90

Lists have lines `id|text`, or texts alone. Phones are those of the symbol set `espeak`, whose marks make questions and
exclamations count as well. Without `--minutes` or `--lines` all lines are written in the new order.
"""

import heapq
import re
import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import fsum
from pathlib import Path

from common.cli import ArgumentParser, run
from common.errors import InputError, shown
from common.files import read_lines, write_text
from common.options import add_options, option, read_options
from common.progress import progress
from common.text.front_end import TextFrontEnd
from common.text.options import TextOptions, text_config

_NAME = re.compile(r"\w[\w.-]*")
SYMBOLS_PER_MINUTE = 16 * 60  # of the set `espeak`, as LJSpeech's reader says them
_MARK_WEIGHT = 3  # of a question or exclamation, in pairs of phones: they are few, and each is said differently


def read_texts(path: Path) -> dict[str, str]:
    """Texts by their ids, of lines `id|text`, or of texts alone, which are called `<file>-00001` and so on.

    Of several columns the last is read. Empty lines and lines that begin with `#` are left out.

    Raises InputError for no texts, an id that is no name of a file or is used again, and an empty text.
    """
    texts: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, bar, _ = line.partition("|")
        name = name.strip() if bar else f"{path.stem}-{len(texts) + 1:05d}"
        text = " ".join(line.rpartition("|")[2].split())
        if not _NAME.fullmatch(name) or not text or name in texts:
            wanted = "id|text, or a text; each id once, of letters, digits and ._-"
            raise InputError(f"{path}:{number}: {shown(line)}, expected {wanted}")
        texts[name] = text
    if not texts:
        raise InputError(f"{path}: no texts")
    return texts


def find_phones(texts: Mapping[str, str], *, language: str) -> dict[str, list[str]]:
    """Symbols of the set `espeak` that each text is read as; texts that cannot be read are named on stderr."""
    front_end = TextFrontEnd(text_config(TextOptions(g2p_language=language)), unknown_symbols="drop")
    phones: dict[str, list[str]] = {}
    for name, text in progress(texts.items(), desc="phones", unit="line"):
        try:
            phones[name] = [front_end.symbols[one] for one in front_end.encode(text, where=name)]
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
    return phones


def find_units(phones: Sequence[str]) -> set[str | tuple[str, str]]:
    """The phones of a text, and the pairs of phones that follow each other."""
    return {*phones, *pairwise(phones)}


def choose_texts(phones: Mapping[str, Sequence[str]]) -> list[str]:
    """The names of texts in an order that covers phones, pairs of phones, questions and exclamations early.

    A text is worth its units, each the less the more of it were chosen before, per symbol that has to be said.
    """
    units = {name: find_units(row) for name, row in phones.items()}
    chosen: Counter[str | tuple[str, str]] = Counter()

    def worth(name: str) -> float:
        values = (1 / (1 + chosen[unit]) ** 2 for unit in units[name])
        marks = (_MARK_WEIGHT / (1 + chosen[mark]) ** 0.5 for mark in "?!" if mark in units[name])
        return fsum((*values, *marks)) / len(phones[name])  # exact, as the order of a set differs from run to run

    heap = [(-worth(name), place, name) for place, name in enumerate(units)]
    heapq.heapify(heap)
    order: list[str] = []
    while heap:
        _, place, name = heapq.heappop(heap)
        entry = (-worth(name), place, name)
        if heap and heap[0] < entry:
            heapq.heappush(heap, entry)
        else:  # worth only falls, so what still leads with its true worth is the best
            order.append(name)
            chosen.update(units[name])
    return order


@dataclass(frozen=True)
class ChoiceOptions:
    """Which texts to write."""

    output: Path = option(None, "list of lines id|text", names=("-o",), required=True, writes=True)
    g2p_language: str = option("en-us", "language tag of eSpeak NG")
    lines: int | None = option(None, "write this many at most", least=1)
    minutes: float | None = option(None, "write about so many minutes of speech at most", least=0)


def main(argv: Sequence[str] | None = None) -> None:
    """Write the texts in their new order."""
    parser = ArgumentParser(description="Order texts so that the first ones hold all pairs of phones")
    parser.add_argument("lists", type=Path, nargs="+", help="lists of lines id|text, or of texts alone")
    add_options(parser, ChoiceOptions)
    args = parser.parse_args(argv)
    options = read_options(args, ChoiceOptions)
    texts = {name: text for path in args.lists for name, text in read_texts(path).items()}
    phones = find_phones(texts, language=options.g2p_language)
    order = choose_texts(phones)[: options.lines]
    ends = list(accumulate(len(phones[name]) / SYMBOLS_PER_MINUTE for name in order))
    if options.minutes is not None:
        order = order[: bisect_right(ends, options.minutes)]
    write_text(options.output, "".join(f"{name}|{texts[name]}\n" for name in order))
    known, units = (len(set().union(*(find_units(phones[name]) for name in names))) for names in (order, phones))
    minutes = ends[len(order) - 1] if order else 0
    print(f"{options.output}: {len(order)} of {len(texts)} texts, about {minutes:.0f} minutes of speech")
    print(f"{known} of the {units} phones and pairs of phones of all texts are in them")


if __name__ == "__main__":
    run(main)
