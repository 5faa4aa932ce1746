"""Align a text's written words with its reading and with the symbols that are spoken."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate, chain, groupby
from operator import itemgetter

from common.text.g2p import SpokenSymbol
from common.text.ssml import Span

# Without the signs that are spoken, as in "$3.50", "50%" and "R&D".
PUNCTUATION = "\"'.,;:!?()[]{}<>-_`´‘’‚‛“”„‟«»‹›‐‑‒–—―…¿¡、。，！？；：「」『』（）।॥؟،؛"
_BEFORE = re.compile(rf"[{re.escape(PUNCTUATION)}]*?(?=-\d|[^{re.escape(PUNCTUATION)}]|$)")  # but not the sign of "-5"
TOKEN = re.compile(r"(?:\{[^}]*\}|\S)+")  # between spaces; phones in curly braces contain spaces
_BRACES = re.compile(r"\{([^}]*)\}")
_STRESS_AND_LENGTH = str.maketrans("", "", "ˈˌː")

_WEIGHTS = {"equal": 10, "replace": 4, "insert": 1}  # of letters, to find the word that a part comes from

Owner = tuple[int, int]  # indices of the first and last word that a sound or token belongs to
FindOwners = Callable[[], tuple[list[str], list[Owner | None]]]  # finds tokens, and each symbol's tokens or None


@dataclass(frozen=True)
class Word:
    """A written word, and the symbols that say it."""

    text: str  # the span's source, or a word of its text without punctuation at both ends
    start: int  # symbols [start, end) of the ids
    end: int
    span: int  # index of the span that it begins in


@dataclass(frozen=True)
class EncodedText:
    """Symbol ids (L,) of a text, and its words, which take longer and are found on first use."""

    ids: tuple[int, ...]
    find_words: Callable[[], tuple[Word, ...]]
    reading: str = ""  # the text as the cleaners wrote it out, before it became phones
    dropped: Counter[str] = field(default_factory=Counter)  # symbols that were left out because the voice lacks them

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words in order, without overlap; spaces, punctuation and pauses belong to no word."""
        return self.find_words()


@dataclass(frozen=True)
class Written:
    """A written word, with its reading and the spaces before it."""

    text: str  # displayed
    span: int
    reading: str  # what the front end reads, including punctuation
    before: str = ""  # spaces


def written_words(spans: Sequence[Span]) -> tuple[list[Written], str]:
    """Return the joined spans' words (a span with a source is one word), and the spaces after the last one."""
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


def _displayed(spans: Sequence[Span], text: str, owners: Sequence[int]) -> tuple[str, int]:
    """Return what to show for a word, and the index of its first span; ``owners`` has the span of each character."""
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
    """Return the words that each part of ``said`` comes from, ``first`` to ``last``, never decreasing.

    ``alone`` has the parts of each word when it is said alone. A part belongs to the word that most of its letters
    come from, judging by the edits between the two; a word without a part shares one.
    """
    if [part for parts in alone for part in parts] == list(said):
        return [(index, index) for index, parts in enumerate(alone) for _ in parts]
    votes = _letters_by_word(alone, said)
    owners = list(accumulate((max(one, key=one.__getitem__) for one in votes), max))
    shared: list[Owner] = []  # place, word
    for word, parts in enumerate(alone):
        if not any(parts) or word in owners or not said:
            continue
        before = max((one for one in owners if one < word), default=-1)
        run = [place for place, one in enumerate(owners) if one == before]
        found = next((place for place in run[1:] if list(said[place : place + len(parts)]) == list(parts)), None)
        if found is None:
            last = max(run, default=0)
            shared.append((max(range(len(said)), key=lambda place: (votes[place][word], place == last)), word))
        else:  # "$5 million" is said as "five million dollars"
            owners[found : run[-1] + 1] = [word] * (run[-1] + 1 - found)
    spans = [(one, one) for one in owners]
    for place, word in shared:
        spans[place] = min(spans[place][0], word), max(spans[place][1], word)
    return spans


def _letters_by_word(alone: Sequence[Sequence[str]], said: Sequence[str]) -> list[Counter[int]]:
    """For each part of ``said``, weigh the words that its letters come from: equal parts first, then letters between.

    Added letters belong to the previous word, to a sign that has no reading alone ("3 - 5") or, in "the", to the next.
    """
    parts = list(chain.from_iterable(alone))
    words = [index for index, own in enumerate(alone) for _ in own] or [0]
    votes: list[Counter[int]] = [Counter() for _ in said]
    for kind, a, b, c, d in SequenceMatcher(None, parts, said, autojunk=False).get_opcodes():
        if kind == "equal":
            for place in range(c, d):
                votes[place][words[a + place - c]] += _WEIGHTS[kind]
            continue
        before, after = words[max(a - 1, 0)], words[min(b, len(words) - 1)]
        owners = [before, *(words[place] for place in range(a, b) for _ in parts[place] + " "), after]
        places = [place for place in range(c, d) for _ in said[place] + " "]
        text, spoken = (" ".join([*some, ""]) for some in (parts[a:b], said[c:d]))
        for edit, i, j, k, end in SequenceMatcher(None, text, spoken, autojunk=False).get_opcodes():
            here, following = owners[i], owners[i + 1 + text.startswith(" ", i)]
            for letter in range(k, end):
                place = places[letter]
                word = here + (following - here > 1) if said[place] != "the" else following
                if edit != "insert":
                    word = owners[1 + i + (letter - k) * (j - i) // (end - k)]
                if spoken[letter] != " ":
                    votes[place][word] += _WEIGHTS[edit]
    return votes


def owners_of_tokens(read_alone: Sequence[list[str]], tokens: Sequence[str]) -> list[Owner | None]:
    """Return the written words of each token, None for punctuation; ``read_alone`` has the tokens of each word."""
    if [token for parts in read_alone for token in parts] == list(tokens):
        return [(index, index) for index, parts in enumerate(read_alone) for _ in parts]
    alone = [list(filter(None, map(_letters, parts))) for parts in read_alone]
    letters = [_letters(token) for token in tokens]
    owners = iter(align(alone, [one for one in letters if one]))
    return [next(owners) if one else None for one in letters]


def _letters(token: str) -> str:
    """Return what is compared: letters and digits in lower case; nothing for punctuation."""
    letters = "".join(one for one in token.lower() if one.isalnum())
    return letters or token.strip(PUNCTUATION)


def owners_of_sounds(
    sounds: Sequence[SpokenSymbol], text: str, say_alone: Callable[[str], Sequence[SpokenSymbol]]
) -> tuple[list[str], list[Owner | None]]:
    """Return the tokens of a text for G2P, and each sound's first and last token, or None for sounds between words."""
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
    """Return each sound's words, by eSpeak's groups or, if one group says several words, by aligning sounds."""
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
    """Group sounds by eSpeak's words, each with its phones as one string."""
    of_words = (sound for sound in sounds if sound.word >= 0)
    groups = [list(group) for _, group in groupby(of_words, key=lambda sound: (sound.part, sound.word))]
    return [(group, "".join(sound.symbol for sound in group).translate(_STRESS_AND_LENGTH)) for group in groups]


def composed(tokens: Sequence[Owner | None], owners: Sequence[Owner | None]) -> list[Owner | None]:
    """Return the written words of each symbol, by its tokens; a token without an owner belongs to the previous word."""
    filled: list[tuple[int, int]] = []
    last = next((owner for owner in owners if owner), (0, 0))
    for owner in owners:
        last = owner or last
        filled.append(last)
    return [token and (filled[token[0]][0], filled[token[1]][1]) for token in tokens]


def words_of_symbols(written: Sequence[Written], owners: Sequence[Owner | None]) -> tuple[Word, ...]:
    """Return the spoken words; words that share symbols become one, with their texts joined by a space."""
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
