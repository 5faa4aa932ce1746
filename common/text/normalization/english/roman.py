"""Roman numerals where they are numbers: kings, chapters, wars, and numerals that are no word."""

import re

from common.text.normalization.english.numbers import cardinal, ordinal, year
from common.text.normalization.tables import word_pattern

_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_VALID = r"(?=[MDCLXVI])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
_RULERS = word_pattern("rulers")
_RULER_TITLES = word_pattern("ruler_titles")
_PARTS = word_pattern("numbered_parts")
_KING = re.compile(
    rf"\b((?:{_RULER_TITLES})\s(?:[A-Z][a-z]+\s)?[A-Z][a-z]+|{_RULERS})\s({_VALID})\b(?!['.]?[A-Za-z](?<!'s))"
)
_PERSON = re.compile(
    rf"\b((?:{_RULERS}|Thomas|Michael|Samuel|Walter|Arthur|Harry|Frank)\s[A-Z][a-z]+)\s(I{{2,3}}|IV)\b"
)
_PART = re.compile(rf"\b((?:{_PARTS}|{_PARTS.lower()}|{_PARTS.upper()})s?\s)({_VALID})\b(?!'[a-rt-z])")
_LOWER_PART = re.compile(
    r"\b((?:[Cc]hapter|[Pp]art|[Aa]ct|[Ss]cene|[Bb]ook|[Vv]olume|[Ss]ection|[Aa]rticle|[Pp]ages?)\s)([xvi]{2,})\b"
)
_WORLD_WAR = re.compile(r"\bWW\s?(I{1,2}|1|2)\b")
_CENTURY = re.compile(rf"\b({_VALID})(?=(?:th)?\s[Cc]entur(?:y|ies)\b)(?:th)?")
_IN_BRACKETS = re.compile(r"\((i{1,3}|iv|vi{1,3}|ix|xi{1,3}|xiv|xvi{0,3})\)")
_BARE = re.compile(
    r"(?<![\w'-])((?=[XVI]{2})X{0,3}(?:IX|IV|V?I{0,3})|M{1,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3}))(?![\w-]|'[a-rt-z])"
)
_LETTERS = frozenset({"IV", "XX", "XXX"})  # by themselves more often letters than numbers
_PRONOUN_VERB = re.compile(
    r"\s(?:am|have|do|will|would|shall|should|can|could|may|might|think|thought|know|knew|see|saw|want|need|love|like|"
    r"hope|believe|just|really|mean|said|say|go|told)\b|'(?!s\b)"
)
_SPOKEN_TO = re.compile(
    r"\b(?:tell|told|ask|asked|promised?|warned|assured|reminded|showed|gave|and)\s$", re.IGNORECASE
)


def value(numeral: str) -> int:
    """A Roman numeral's number: "XIV" -> 14."""
    values = [_VALUES[letter] for letter in numeral.upper()]
    return sum(one if one >= after else -one for one, after in zip(values, [*values[1:], 0]))


def _read_king(match: re.Match) -> str:
    numeral = match[2]
    text = match.string
    if numeral == "I" and (_PRONOUN_VERB.match(text, match.end()) or _SPOKEN_TO.search(text[: match.start()][-12:])):
        return match[0]  # the pronoun: "I told George I was ill"
    if numeral == "X" and match[1] == "Malcolm":
        return match[0]
    return f"{match[1]} the {ordinal(value(numeral))}"


def _read_lower_part(match: re.Match) -> str:
    return match[1] + cardinal(value(match[2])) if re.fullmatch(_VALID, match[2].upper()) else match[0]


def _read_bare(match: re.Match) -> str:
    numeral = match[1]
    if numeral in _LETTERS or len(numeral) < (4 if numeral[0] == "M" else 2):
        return match[0]
    number = value(numeral)
    return year(number) if 1000 < number < 2100 else cardinal(number)


def read_roman(text: str) -> str:
    """Write out Roman numerals: "George VI" -> "George the sixth", "Chapter IV" -> "Chapter four"; "MIX" stays."""
    text = _LOWER_PART.sub(_read_lower_part, text)
    text = _IN_BRACKETS.sub(lambda match: f"({cardinal(value(match[1]))})", text)
    if not re.search(r"\b[MDCLXVI]+\b|WW", text):
        return text
    text = _WORLD_WAR.sub(lambda match: f"World War {'two' if match[1] in ('II', '2') else 'one'}", text)
    text = _CENTURY.sub(lambda match: ordinal(value(match[1])), text)
    text = _PART.sub(lambda match: match[1] + cardinal(value(match[2])), text)
    text = _KING.sub(_read_king, text)
    text = _PERSON.sub(lambda match: f"{match[1]} the {ordinal(value(match[2]))}", text)
    return _BARE.sub(_read_bare, text)
