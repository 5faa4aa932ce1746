"""The words of a text and their symbols: what is written, what is read, and what is spoken, aligned in order."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from operator import itemgetter

from common.text.g2p import BOUNDARY, SpokenSymbol
from common.text.ssml import Span

# Not of what is said by name, as "$3.50", "50%" and "R&D" are.
PUNCTUATION = "\"'.,;:!?()[]{}<>-_`´‘’‚‛“”„‟«»‹›‐‑‒–—―…¿¡、。，！？；：「」『』（）।॥؟،؛"
_BEFORE = re.compile(rf"[{re.escape(PUNCTUATION)}]*?(?=-\d|[^{re.escape(PUNCTUATION)}]|$)")  # not of "-5"
TOKEN = re.compile(r"(?:\{[^}]*\}|\S)+")  # between spaces; phones in curly braces have spaces of their own
_BRACES = re.compile(r"\{([^}]*)\}")
_STRESS_AND_LENGTH = str.maketrans("", "", "ˈˌː")

# Costs of an alignment, in letters to take out or to put in.
_REPLACED = 1.5  # a vowel instead of another
_VOWELS = frozenset("aeiouyæøœɐɑɒɔɘəɛɜɞɤɨɪɯɵɶʉʊʌʏɚɝᵻ")
_ARTICLE = 0.2  # a "the" that belongs to neither is the next one's: "George VI"
_SILENT = 6.0  # a word that is left without anything said
_CHANGED = 2.0  # each part that says a word alone and is not among those that say it here
_SIGN = -0.1  # what has no reading alone, "-" or "+", takes words that its neighbors do not explain
_MOST_MERGED = 4  # words: "would have been in"
_BEAM = 20.0  # by which an alignment may cost more than the best one so far, and by what is said otherwise alone

Owner = tuple[int, int]  # the first and the last of the words, by index, that something said belongs to


@dataclass(frozen=True)
class Word:
    """A word as it is written, and the symbols that say it."""

    text: str  # a span's source, or the word of its text, without punctuation at both ends
    start: int  # symbols [start, end) of the ids
    end: int
    span: int  # index of the span in which it begins


@dataclass(frozen=True)
class EncodedText:
    """Symbol ids (L,) of a text, and its words, which are found when they are first asked for: that takes longer."""

    ids: tuple[int, ...]
    find_words: Callable[[], tuple[Word, ...]]
    reading: str = ""  # the text as the cleaners wrote it out, before it became phones
    dropped: Counter[str] = field(default_factory=Counter)  # symbols that the voice lacks, which were left out

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words in order, without overlap; symbols of no word are spaces, punctuation and pauses."""
        return self.find_words()


@dataclass(frozen=True)
class Written:
    """A word as it is written, with the spaces and the text around it as they are read."""

    text: str  # displayed
    span: int
    reading: str  # what the front end reads of it, punctuation included
    before: str = ""  # spaces


@dataclass(frozen=True)
class Spoken:
    """What is read of a text, its symbols, and how to find its tokens (between spaces) and those of each symbol."""

    reading: str
    symbols: list[str]
    find_owners: Callable[[], tuple[list[str], list[Owner | None]]]  # tokens; of each symbol its tokens, or None


def written_words(spans: Sequence[Span]) -> tuple[list[Written], str]:
    """The words between spaces of the joined spans, and the spaces after the last one.

    A span with a source is one word, together with what is written to it: ``WWW's``.
    """
    joined = "".join(span.text for span in spans)
    owners = [index for index, span in enumerate(spans) for _ in span.text]
    words: list[Written] = []
    done = 0
    for match in TOKEN.finditer("".join(span.masked for span in spans)):
        start, end = match.span()
        text, index = _displayed(spans, joined[start:end], owners[start:end])
        words.append(Written(text, index, joined[start:end], joined[done:start]))
        done = end
    return words, joined[done:]


def written_phones(spans: Sequence[Span], *, between: Container[str]) -> tuple[list[Written], str]:
    """Words of spans of phones, separated by boundaries, silences and marks (``between``), and the spaces at the end.

    Where no boundary is written and phones are written together ("kæt dɔɡ"), words are between spaces.
    """
    written, after = written_words(spans)
    boundaries = [word.reading in between for word in written]
    together = any(_is_together(word.reading) for word, boundary in zip(written, boundaries) if not boundary)
    if BOUNDARY in (word.reading for word in written) or not together:
        words: list[Written] = []
        for word, boundary, after_boundary in zip(written, boundaries, [True, *boundaries]):
            last = words[-1] if words else word
            if boundary or after_boundary or not (spans[word.span].source is spans[last.span].source is None):
                words.append(word)
            else:
                reading = last.reading + word.before + word.reading
                words[-1] = replace(last, text=f"{last.text} {word.text}", reading=reading)
        written = words
    return written, after


def _is_together(word: str) -> bool:
    """Whether a word is more than a phone, which is two letters at most ("aɪ") and what is added to them."""
    return sum(unicodedata.category(one) in ("Ll", "Lo") for one in word) > 2


def _displayed(spans: Sequence[Span], text: str, owners: Sequence[int]) -> tuple[str, int]:
    """What a word shows, whose characters are of the spans ``owners``, and the index of the span in which it begins."""
    pieces: list[tuple[str, int]] = []
    for index, characters in groupby(zip(owners, text), key=itemgetter(0)):
        source = spans[index].source
        pieces.append(("".join(one for _, one in characters) if source is None else source, index))
    shown = list(pieces)
    for place in (0, -1):
        while shown and spans[shown[place][1]].source is None:
            text, index = shown[place]
            shown[place] = (text.rstrip(PUNCTUATION) if place else _BEFORE.sub("", text, count=1), index)
            if shown[place][0]:
                break
            del shown[place]
    shown = shown or pieces  # punctuation alone, which may be said: "3 - 5"
    return "".join(text for text, _ in shown), shown[0][1]


def align(alone: Sequence[Sequence[str]], said: Sequence[str]) -> list[Owner]:
    """Which words each part of ``said`` is from: words ``first`` to ``last``, never decreasing.

    ``alone`` has for each word the parts that say it when it stands alone. The alignment in order with the fewest
    letters that differ is taken: a word has any number of parts, and a part is of several words where they are said
    together, or where a word that is said alone has none of its own.
    """
    owner = [index for index, parts in enumerate(alone) for _ in parts]
    if [part for parts in alone for part in parts] == list(said):
        return [(index, index) for index in owner]
    steps = _cheapest_steps(alone, said)
    owners: list[Owner] = []
    for first, end, start, stop in steps:
        if start == stop and owners and alone[first]:
            owners[-1] = (owners[-1][0], first)
        owners += [(first, end - 1)] * (stop - start)
    silent = next((index for index, parts in enumerate(alone) if parts), 0)
    if owners and silent < owners[0][0]:
        owners[0] = (silent, owners[0][1])
    return [(first, max(last, first)) for first, last in owners]


def _cheapest_steps(alone: Sequence[Sequence[str]], said: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Steps from the beginning to the end: words [first, end) are said by parts [start, stop)."""
    n_words, n_said = len(alone), len(said)
    known = set(said)
    beam = _BEAM + max((len("".join(parts)) for parts in alone if not known.issuperset(parts)), default=0)
    extra = max(n_said - sum(map(len, alone)), 0)
    costs: list[dict[int, float]] = [{0: 0.0}, *({} for _ in alone)]
    back: list[dict[int, tuple[int, int]]] = [{} for _ in range(n_words + 1)]

    def reach(word: int, part: int, cost: float, source: tuple[int, int]) -> None:
        if cost <= costs[word].get(part, float("inf")):  # of equals the last: what is added belongs to the word before
            costs[word][part], back[word][part] = cost, source

    for word, own in enumerate(alone):
        is_last = n_words - word == 1
        longest = n_said if is_last else 2 * len(own) + 4 + extra
        worst = min(costs[word].values()) + beam
        for part, cost in sorted(costs[word].items()):
            if cost > worst:
                continue
            here = said[part : part + longest]
            for length, price in enumerate(_prices(own, here, enough=float("inf") if is_last else beam)):
                reach(word + 1, part + length, cost + price, (word, part))
            if not here or list(own) == list(here[: len(own)]):
                continue
            for more in range(2, min(_MOST_MERGED, n_words - word) + 1):
                together = [letters for parts in alone[word : word + more] for letters in parts]
                price = _differences("".join(together), here[:1], enough=beam)[1]
                reach(word + more, part + 1, cost + price + _CHANGED * more, (word, part))
    steps = []
    word, part = n_words, n_said
    while word:
        first, start = back[word][part]
        steps.append((first, word, start, part))
        word, part = first, start
    return steps[::-1]


def _prices(own: Sequence[str], said: Sequence[str], *, enough: float) -> list[float]:
    """What it costs that a word, whose ``own`` parts say it alone, is said by nothing, the first part, and so on.

    Parts that cost more than ``enough`` in any case are left out.
    """
    text = "".join(own)
    prices: list[float] = []
    for length, price in enumerate(_differences(text, said, enough=enough)):
        price += _CHANGED * len(set(own).difference(said[:length]))
        if length and said[length - 1] == "the" and "the" not in own:
            price += _ARTICLE
        if bool(length) != bool(text):  # what has no reading alone, or is left without one
            price += _SIGN if length else _SILENT
        prices.append(price)
    return prices


def _differences(text: str, parts: Sequence[str], *, enough: float) -> list[float]:
    """Letters to change, take out and put in to make ``text`` of no part, the first, the first two, and so on.

    The list ends with the first that is more than ``enough``, whatever follows.
    """
    row = [float(length) for length in range(len(text) + 1)]
    found = [row[-1]]
    for part in parts:
        for letter in part:
            is_vowel, above, left = letter in _VOWELS, row[0], row[0] + 1
            row[0] = left
            for i, own in enumerate(text, 1):  # where a text's time goes: comparisons are faster than min()
                here = row[i]
                left = above if own == letter else (here if here < left else left) + 1
                if is_vowel and own in _VOWELS and above + _REPLACED < left:
                    left = above + _REPLACED
                above, row[i] = here, left
        found.append(row[-1])
        if min(row) > enough:
            break
    return found


def owners_of_tokens(read_alone: Sequence[list[str]], tokens: Sequence[str]) -> list[Owner | None]:
    """The written words that each token of the read text comes from, None for punctuation.

    ``read_alone`` has the tokens of each written word when it is read alone.
    """
    if [token for parts in read_alone for token in parts] == list(tokens):
        return [(index, index) for index, parts in enumerate(read_alone) for _ in parts]
    alone = [list(filter(None, map(_letters, parts))) for parts in read_alone]
    letters = [_letters(token) for token in tokens]
    owners = iter(align(alone, [one for one in letters if one]))
    return [next(owners) if one else None for one in letters]


def _letters(token: str) -> str:
    """What is compared: letters and digits in lower case; nothing for punctuation."""
    letters = "".join(one for one in token.lower() if one.isalnum())
    return letters or token.strip(PUNCTUATION)


def owners_of_sounds(
    sounds: Sequence[SpokenSymbol], text: str, say_alone: Callable[[str], Sequence[SpokenSymbol]]
) -> tuple[list[str], list[Owner | None]]:
    """The tokens of a text for G2P, and of each sound of it the first and last token, or None for what is between."""
    tokens: list[str] = []
    owners: list[Owner | None] = [None] * len(sounds)
    for index, part in enumerate(_BRACES.split(" ".join(text.split()))):
        here = [place for place, sound in enumerate(sounds) if sound.part == index and sound.word >= 0]
        if index % 2:
            for place in here:
                owners[place] = (len(tokens), len(tokens))
            tokens.append("{" + part + "}")
            continue
        words = part.split()
        for place, (first, last) in zip(here, _owners_in_part([sounds[i] for i in here], words, say_alone)):
            owners[place] = (len(tokens) + first, len(tokens) + last)
        tokens += words
    return tokens, owners


def _owners_in_part(
    sounds: Sequence[SpokenSymbol], words: Sequence[str], say_alone: Callable[[str], Sequence[SpokenSymbol]]
) -> list[Owner]:
    """The words of each sound, by eSpeak's groups and, where one group says several words, by aligning sounds."""
    if not sounds or not words:
        return []
    alone = [[said for _, said in _groups(say_alone(word))] for word in words]
    groups = _groups(sounds)
    owners: list[Owner] = []
    for (members, _), (first, last) in zip(groups, align(alone, [said for _, said in groups])):
        if first == last:
            owners += [(first, last)] * len(members)
            continue
        phones = [sound.symbol.translate(_STRESS_AND_LENGTH) for sound in members]
        owners += [(first + a, first + b) for a, b in align(alone[first : last + 1], phones)]
    return owners


def _groups(sounds: Sequence[SpokenSymbol]) -> list[tuple[list[SpokenSymbol], str]]:
    """Sounds by eSpeak's words, each with its phones as one string."""
    groups: dict[tuple[int, int], list[SpokenSymbol]] = {}
    for sound in sounds:
        if sound.word >= 0:
            groups.setdefault((sound.part, sound.word), []).append(sound)
    return [
        (group, "".join(sound.symbol for sound in group).translate(_STRESS_AND_LENGTH)) for group in groups.values()
    ]


def composed(tokens: Sequence[Owner | None], owners: Sequence[Owner | None]) -> list[Owner | None]:
    """The written words of each symbol, by its tokens; a token without an owner counts to the previous word."""
    filled: list[tuple[int, int]] = []
    last = next((owner for owner in owners if owner), (0, 0))
    for owner in owners:
        last = owner or last
        filled.append(last)
    return [token and (filled[token[0]][0], filled[token[1]][1]) for token in tokens]


def words_of_symbols(written: Sequence[Written], owners: Sequence[Owner | None]) -> tuple[Word, ...]:
    """The words that are said; those that share symbols are one, with their texts joined by a space."""
    words: list[Word] = []
    until = -1  # the last written word of words[-1]
    for place, owner in enumerate(owners):
        if owner is None:
            continue
        first, last = owner
        if words and first <= until:
            more = [one.text for one in written[until + 1 : last + 1]]
            words[-1] = replace(words[-1], text=" ".join([words[-1].text, *more]), end=place + 1)
        else:
            text = " ".join(one.text for one in written[first : last + 1])
            words.append(Word(text, place, place + 1, written[first].span))
        until = max(until, last)
    return tuple(words)
