"""Guess the columns of a table of recordings from their content."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from statistics import correlation

from common.data.filelist import WORD
from common.importing.recordings import RecordingIndex

OTHER = "-"  # an unused column
_TRIED = 1000  # rows to examine
_NUMBER = re.compile(r"[\d\s.,:+-]+(s|sec|ms|hz|khz)?", re.IGNORECASE)  # a length, a time, a rate
_IPA = re.compile("[ˈˌːɪʊʌɑɒɜɚɹɾʔɡəɛɔʃʒ]")  # make up at least a tenth of a column of phones
_ALIKE = 0.5  # minimum share of words that two versions of a text have in common
_LONGER = 3  # texts are more than this many times as long as titles, names and remarks
_FEW = 10  # rows; in a table this small, each speaker may occur only once


def guess_columns(rows: Sequence[Sequence[str]], index: RecordingIndex, *, separator: str) -> list[str]:
    """Return a table's column names: path, text, normalized_text, speaker or `OTHER`; [] if none has recordings."""
    rows = rows[:_TRIED]
    width = max(map(len, rows), default=0)
    hits = [sum(index.knows(row[place]) for row in rows if place < len(row)) for place in range(width)]
    if not any(hits):
        return []
    path = hits.index(max(hits))
    rows = [row for row in rows if path < len(row) and index.knows(row[path])]
    if separator in ",;":  # commas may be part of a text
        width = min(map(len, rows))
        width = next((n for n in range(path + 2, width) if all(row[n].startswith(" ") for row in rows)), width)
    columns = {n: [row[n].strip() if n < len(row) else "" for row in rows] for n in range(width)}
    paths = columns.pop(path)
    texts = [n for n, values in columns.items() if not all(_NUMBER.fullmatch(one) for one in values if one)]
    if not texts:
        return []
    speakers = [n for n in columns if _are_speakers(columns, n, paths)]
    others = [n for n in texts if n not in speakers]
    if not others:  # a few sentences, each read by several speakers
        unnamed = [n for n in texts if not all(map(str.__contains__, paths, columns[n]))]
        others = [max(unnamed or texts, key=lambda n: len("".join(columns[n])))]
    sizes = {n: len("".join(columns[n])) for n in others}
    spelled = [n for n in others if len(_IPA.findall("".join(columns[n]))) < sizes[n] / 10] or others
    text = next(n for n in spelled if sizes[n] * _LONGER >= max(sizes[one] for one in spelled))
    heading = [OTHER] * width
    heading[path], heading[text] = "path", "text"
    if found := [n for n in speakers if n != text and not _are_lengths(columns[n], columns[text], after=n > text)]:
        heading[max(found, key=lambda n: len({*columns[n]}))] = "speaker"
    for n in texts:
        if n > text and heading[n] == OTHER and _say_the_same(columns[text], columns[n]):
            heading[n] = "normalized_text"
    return heading


def _are_speakers(columns: Mapping[int, Sequence[str]], place: int, paths: Sequence[str]) -> bool:
    """Whether values repeat, are folders in ``paths``, or, in a small table, are single words next to sentences."""
    values = columns[place]
    if not all(values) or any(_NUMBER.fullmatch(one) and not one.isdigit() for one in values):
        return False
    folders = {part for one in paths for part in PurePosixPath(one).parts[:-1]}
    if len({*values}) <= len(values) / 2 or {*values} <= folders:
        return True
    sentences = any(" " in one for n, others in columns.items() if n != place for one in others)
    return sentences and len(values) <= _FEW and not any(" " in one or one.isdigit() for one in values)


def _are_lengths(values: Sequence[str], texts: Sequence[str], *, after: bool) -> bool:
    """Whether numbers grow with the text, as durations do; in a small table, whether they come ``after`` it."""
    if not all(map(str.isdecimal, values)) or len({*values}) < 2:
        return False
    numbers, sizes = [float(one) for one in values], [float(len(one)) for one in texts]
    if len(values) <= _FEW or len({*sizes}) < 2:
        return after and min(numbers) > 1
    return correlation(numbers, sizes) > _ALIKE


def _say_the_same(texts: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two columns share most words, in rows where both are filled."""
    pairs = [[Counter(WORD.findall(text.lower())) for text in pair] for pair in zip(texts, others) if all(pair)]
    shorter = sum(min(one.total(), other.total()) for one, other in pairs)
    return sum((one & other).total() for one, other in pairs) >= _ALIKE * max(shorter, 1)
