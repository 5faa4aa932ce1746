"""Decide what is spelled letter by letter and what is spoken: words in capitals, initials, Internet addresses."""

import re
from functools import lru_cache

from common.text.normalization.numbers import cardinal, digits
from common.text.normalization.rules import rules
from common.text.tables import word_set, word_table

_INITIALISMS = word_set("initialisms")
_SPOKEN = word_set("spoken_capitals")
# Initialisms that are also common words; read as words if their neighbors are in capitals, too ("GIVE IT TO US").
_AMBIGUOUS = frozenset({"IT", "US", "WHO", "ERA", "LED", "MOD", "RIP", "COB", "SEC"})

_ONSETS = word_set("onsets") | {""}
_CODAS = word_set("codas") | {""}
_RUNS = re.compile(r"[aeiouy]+|[^aeiouy]+")
_AFTER_THE = re.compile(r"\bthe\s$", re.IGNORECASE)


@lru_cache(maxsize=16384)
def _is_pronounceable(word: str) -> bool:
    """Whether letters can be spoken as an English word: vowels, and consonants that can end and begin a syllable."""
    runs = _RUNS.findall(word.lower())
    if not any(run[0] in "aeiouy" for run in runs):
        return False
    for place, run in enumerate(runs):
        if run[0] in "aeiouy":
            fits = len(run) <= 3
        else:
            cuts = range(1) if place == 0 else range(len(run) * (place == len(runs) - 1), len(run) + 1)
            fits = any(run[:cut] in _CODAS and run[cut:] in _ONSETS for cut in cuts)
        if not fits:
            return False
    return True


@lru_cache(maxsize=16384)
def is_spelled(capitals: str) -> bool:
    """Whether a word in capitals is said letter by letter: FBI and TV are; NASA, WHY and IMPORTANT are not."""
    if capitals in _INITIALISMS:
        return True
    return capitals not in _SPOKEN and (len(capitals) == 2 or not _is_pronounceable(capitals))


def spell(letters: str) -> str:
    """ "FBI" -> "f.b.i."."""
    return ".".join(letters.lower()) + "."


def _has_capital_neighbor(text: str, start: int, end: int) -> bool:
    """Whether the word before or after is in capitals, too, as in a phrase in capitals."""
    before, after = re.findall(r"[A-Za-z]+", text[max(0, start - 30) : start]), re.match(r"\W*([A-Za-z]+)", text[end:])
    words = [*before[-1:], *([after[1]] if after else [])]
    return any(len(word) > 1 and word.isupper() and not is_spelled(word) for word in words)


def _capitals(match: re.Match) -> str:
    word, ending, stop = match[1], match[2] or "", match[3] or ""
    after_the = word == "US" and _AFTER_THE.search(match.string[: match.start()])
    is_word = word in _AMBIGUOUS and not after_the and _has_capital_neighbor(match.string, match.start(), match.end())
    if is_word or not is_spelled(word):
        return match[0].lower()
    return spell(word) + (ending + stop if ending else "")  # without one, its last full stop also ends the sentence


def _compound(match: re.Match) -> str:
    """ "CaCO3" -> "c.a.c.o. three"."""
    pieces = re.findall("[A-Za-z]+|[0-9]+", match[0])
    return " ".join(cardinal(one) if one.isdigit() else spell(one) if len(one) > 1 else one.lower() for one in pieces)


read_letters = rules(
    "letters", initials=lambda letters: spell(letters) if len(letters) > 1 else letters, capitals=_capitals
)

_SPELLED_DOMAINS = word_set("spelled_domains")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]")
_SIGNS = word_table("address_signs")


def _address_part(part: str, *, is_domain: bool = False) -> str:
    if part in _SIGNS:
        return _SIGNS[part]
    if part.isdigit():
        return cardinal(part) if len(part) <= 2 and part[0] != "0" else digits(part)
    if is_domain:
        spelled = part.lower() in _SPELLED_DOMAINS
    else:  # "html" and "ibm" are, "john" is not
        spelled = not set("aeiouy").intersection(part.lower()) or (len(part) > 2 and part.upper() in _INITIALISMS)
    return " ".join(part.lower()) if spelled or len(part) == 1 else part.lower()


def _address(match: re.Match) -> str:
    """Write "john@mail.co.uk" as "john at mail dot co dot u k"."""
    parts = _PART.findall(re.sub(r"^(?:https?|ftp)://", "", match[0]).rstrip("/"))
    before = ["", *parts]
    return " ".join(_address_part(part, is_domain=last == "." and part.isalpha()) for last, part in zip(before, parts))


def _file(match: re.Match) -> str:
    return " ".join(map(_address_part, _PART.findall(match[0])))


def _camel(match: re.Match) -> str:
    """Split a word whose capitals are spelled: "ChatGPT" -> "Chat GPT", "JPMorgan" -> "JP Morgan"."""
    capitals = match[match.lastindex]  # type: ignore[index]  # each rule has a group
    if not is_spelled(capitals):
        return match[0]
    return f"{match[0].removesuffix(capitals)} {capitals}" if match.lastindex == 2 else f"{capitals} "


_CAPITALS_INSIDE = re.compile("[a-z][A-Z]|[A-Z]{3}[a-z]|Xi")
_read_addresses, _read_names = rules("addresses", address=_address, file=_file), rules("names", camel=_camel)
_read_handles, _read_chemistry = rules("handles"), rules("chemistry", compound=_compound)


def read_addresses(text: str) -> str:
    """Write out addresses and file names, then names such as "ChatGPT", then handles ("@name", "#topic")."""
    text = _read_chemistry(_read_addresses(text))
    return _read_handles(_read_names(text) if _CAPITALS_INSIDE.search(text) else text)
