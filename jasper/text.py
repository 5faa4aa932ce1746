"""Convert transcripts to Jasper's form: published normalization, and characters as labels."""

import re
import string
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from unidecode import unidecode

from common.text.cleaners import collapse_spaces
from common.text.normalization.english.characters import script_of
from common.text.normalization.numbers import digits as spoken_digits, named
from common.text.symbols import precomposed
from common.text.tables import word_table

# The original's exceptions to Unidecode.
_TRANSLITERATED = str.maketrans({"€": "e", "£": ""})
# The abbreviations of the published normalization.
_KNOWN = "mrs mr dr st co jr maj gen drs rev lt hon sgt capt esq ltd col ft".split()
_TITLES = word_table("published_titles")
_ABBREVIATION = re.compile(rf"\b({'|'.join(_KNOWN)})\.")
_SPOKEN_MARKS = str.maketrans({"&": " and ", "+": " plus "})
_COMMAS = re.compile(r"[0-9][0-9,]+[0-9]")
_DOLLARS = re.compile(r"\$([0-9.,]*[0-9]+)")
_DECIMAL = re.compile(r"([0-9]+)\.([0-9]+)")
_ORDINAL = re.compile(r"(?<![0-9])[0-9]{1,36}(?:st|nd|rd|th)")
_NUMBER = re.compile(r"[0-9]+")
_LONGEST_NUMBER = 10**9  # larger ones are read digit by digit unless they are round
_SAID = "&%@#*"  # punctuation that is spoken
_MOST_DIGITS = 36  # of a number that has a name


def encode(text: str, labels: tuple[str, ...]) -> list[int]:
    """Return the ids of the characters that are labels; others are dropped, as published."""
    ids = {label: index for index, label in enumerate(labels)}
    return [ids[character] for character in text if character in ids]


def decode(ids: Iterable[int], labels: tuple[str, ...]) -> str:
    """Return the text of ``ids``."""
    return "".join(labels[index] for index in ids)


def is_english(labels: tuple[str, ...]) -> bool:
    """Whether the English normalization, which writes ASCII, suits the labels."""
    return all(map(str.isascii, labels))


def spelled(text: str, labels: tuple[str, ...]) -> str:
    """Write a transcript in the characters of ``labels``; punctuation becomes spaces, letters may lose accents."""
    text = precomposed(text)
    if "ı" in labels:
        text = text.replace("I", "ı").replace("İ", "i")
    return collapse_spaces("".join(_labelled(character, labels) for character in text)).strip()


@lru_cache(maxsize=4096)
def _labelled(character: str, labels: tuple[str, ...]) -> str:
    kind = unicodedata.category(character)[0]
    plain = unidecode(character) if kind in "LP" and not script_of(character) else ""
    for form in (character, character.lower(), character.upper(), plain, plain.lower(), plain.upper()):
        if form and all(one in labels for one in form):
            return form
    return " " if kind in "PZC" and character not in _SAID else character


def normalize_transcript(text: str, labels: tuple[str, ...]) -> str:
    """Normalize a transcript as published: lower case, numbers and abbreviations written out ("50%" is "fifty").

    Unless all ``labels`` are ASCII, it is only `spelled` in them.
    """
    if not is_english(labels):
        return spelled(text, labels)
    text = unidecode(text.translate(_TRANSLITERATED)).lower()
    text = _ABBREVIATION.sub(lambda match: _TITLES[match[1]], _with_numbers(text))
    spaces = str.maketrans({mark: " " for mark in string.punctuation if mark not in labels})
    text = collapse_spaces(text.translate(spaces | _SPOKEN_MARKS))
    return collapse_spaces("".join(character for character in text if character in labels)).strip()


def _with_numbers(text: str) -> str:
    text = _COMMAS.sub(lambda match: match[0].replace(",", ""), text)
    text = _DOLLARS.sub(_amount, text)
    text = _DECIMAL.sub(r"\1 point \2", text)
    text = _ORDINAL.sub(lambda match: named(int(match[0][:-2]), to="ordinal"), text)
    return _NUMBER.sub(lambda match: _number(match[0]), text)


def _amount(match: re.Match) -> str:
    """Write out "$3.75" as "3 dollars, 75 cents"."""
    parts = match[1].replace(",", "").split(".")
    if len(parts) > 2:
        return match[1] + " dollars"
    units = [(int(part or 0), name) for part, name in zip(parts, ("dollar", "cent"))]
    spoken = [f"{number} {name}{'' if number == 1 else 's'}" for number, name in units if number]
    return ", ".join(spoken) or "zero dollars"


@lru_cache(maxsize=65536)
def _number(digits: str) -> str:
    """Read a whole number: years in pairs, digit by digit if it begins with 0 or is very large, else in full."""
    if digits[0] == "0" or len(digits) > _MOST_DIGITS:
        return spoken_digits(digits)
    number = int(digits)
    if number > _LONGEST_NUMBER and number % 10000:
        return spoken_digits(digits)
    if not 1000 < number < 3000 or number == 2000:
        return _in_words(number)
    if 2000 < number < 2010:
        return "two thousand " + _in_words(number % 100)
    first, last = divmod(number, 100)
    return f"{_in_words(first)} {'oh ' * (last < 10) + _in_words(last) if last else 'hundred'}"


def _in_words(number: int) -> str:
    return named(number).replace(" and ", " ")
