"""Numbers in words: cardinals, ordinals, years, decades, decimals and single digits."""

import re
from functools import lru_cache

from common.text.tables import word_pattern, word_table

_BELOW_20 = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
_TENS_WORDS = ["", "", *"twenty thirty forty fifty sixty seventy eighty ninety".split()]
_SCALES = ("", "thousand", "million", "billion", "trillion", "quadrillion")
_IRREGULAR_ORDINALS = word_table("irregular_ordinals")
LARGEST = 10 ** (3 * len(_SCALES)) - 1  # the largest number that has a name here; others are read digit by digit

# A number as it is written: 7, 1,234, 10.05 (a part of a pattern, without borders).
NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?"


def _below_thousand(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    words = [f"{_BELOW_20[hundreds]} hundred"] if hundreds else []
    if rest:
        tens, units = divmod(rest, 10)
        words.append(_BELOW_20[rest] if rest < 20 else _TENS_WORDS[tens] + (f" {_BELOW_20[units]}" if units else ""))
    return " and ".join(words)


@lru_cache(maxsize=65536)
def cardinal(number: int) -> str:
    """104 -> "one hundred and four"; digit by digit above ``LARGEST``."""
    if number < 20:
        return _BELOW_20[number]
    if number > LARGEST:
        return digits(str(number))
    groups = []  # of three digits, the last first
    for scale, name in enumerate(_SCALES):
        if group := number // 1000**scale % 1000:
            groups.append(f"{_below_thousand(group)} {name}".strip())
    if 0 < number % 1000 < 100 and len(groups) > 1:
        groups[0] = "and " + groups[0]
    return " ".join(reversed(groups))


def ordinal(number: int) -> str:
    """22 -> "twenty second"."""
    head, _, last = cardinal(number).rpartition(" ")
    regular = last[:-1] + "ieth" if last.endswith("y") else last + "th"
    return f"{head} {_IRREGULAR_ORDINALS.get(last, regular)}".strip()


def year(number: int) -> str:
    """A year of up to four digits: 1905 "nineteen oh five", 1900 "nineteen hundred", 2007 "two thousand seven"."""
    if number < 1000 or number > 9999 or number % 1000 == 0:
        return cardinal(number)
    if number % 1000 < 10:
        return f"{cardinal(number // 1000)} thousand {cardinal(number % 10)}"
    first, last = divmod(number, 100)
    return f"{cardinal(first)} {two_digits(last)}"


def two_digits(number: int) -> str:
    """The last two digits of a year: 5 "oh five", 99 "ninety nine", 0 "hundred"."""
    return f"{'oh ' if number < 10 else ''}{cardinal(number)}" if number else "hundred"


def digits(text: str) -> str:
    """Every digit of ``text`` by itself: "0958" -> "zero nine five eight"; other characters are skipped."""
    return " ".join(_BELOW_20[int(character)] for character in text if character in "0123456789")


def identifier(text: str) -> str:
    """The number of a room, a road or an aircraft: 747 "seven forty seven", 101 "one oh one", 66 "sixty six"."""
    if text.startswith("0") or len(text) > 4:
        return digits(text)
    number = int(text)
    if len(text) == 3 and number % 100:
        return f"{cardinal(number // 100)} {two_digits(number % 100)}"
    return year(number)


def number_words(text: str) -> str:
    """A written number: "1,234.50" -> "one thousand two hundred and thirty four point five zero"."""
    whole, point, fraction = text.replace(",", "").partition(".")
    if len(whole) > len(str(LARGEST)) or (len(whole) > 1 and whole[0] == "0"):  # 007, and numbers without a name
        words = digits(whole)
    else:
        words = cardinal(int(whole)) if whole else ""
    return f"{words} point {digits(fraction)}".strip() if point else words


def plural(words: str) -> str:
    """Several of a number: "sixty" -> "sixties", "six" -> "sixes", "nineteen hundred" -> "nineteen hundreds"."""
    if words.endswith("y"):
        return words[:-1] + "ies"
    return words + ("es" if words.endswith("x") else "s")


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
_PRONOUN_VERB = re.compile(rf"\s(?:{word_pattern('verbs_after_i')})\b|'(?!s\b)")
_SPOKEN_TO = re.compile(rf"\b(?:{word_pattern('before_i')})\s$", re.IGNORECASE)


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
