"""How published cleaners write ASCII and read numbers, money, times, units and abbreviations, faults included."""

import json
import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from common.text.normalization.numbers import digits, named
from common.text.normalization.rules import rules
from common.text.tables import word_table

_CURRENCIES = {"$": "dollar", "£": "pound", "€": "euro", "₩": "won"}
_MAGNITUDES = {"m": "million", "b": "billion", "t": "trillion"}

_MOST_DIGITS = 36  # of a number that has a name; longer ones are read digit by digit


def _words(number: int | str) -> str:
    """Write a number in words, decimals digit by digit: "2.50" -> "two point five zero"."""
    whole, point, fraction = str(number).partition(".")
    words = named(int(whole)) if whole else ""
    return f"{words} point {digits(fraction)}".strip() if point else words


def _reads_in_hundreds(number: float) -> bool:
    """Whether to say "fifteen hundred"; as published, for every multiple of 100 above 1000, however large."""
    return number > 1000 and number % 100 == 0 and number % 1000 != 0


def _amount(quantity: int | str) -> str:
    """Read an amount of money; as published, only those below 10,000 are read in hundreds."""
    number = float(quantity)
    in_hundreds = number < 10000 and _reads_in_hundreds(number)
    return _words(int(number / 100)) + " hundred" if in_hundreds else _words(quantity)


def _amount_words(match: re.Match) -> str:
    """Write out "$2.50" as "two dollars, fifty cents" and "£1,250.99" as pounds and cents (published, exactly)."""
    unit, magnitude = _CURRENCIES[match[1]], match[3]
    quantity = match[2].replace(",", "")
    if quantity.count(".") > 1 or len(quantity) > _MOST_DIGITS:  # not an amount; its digits are read later
        return f"{quantity} {unit}s"
    if magnitude is not None:
        magnitude = magnitude.lower()
        return f"{_amount(quantity)} {_MAGNITUDES.get(magnitude, magnitude)} {unit}s"
    return _units_and_cents(quantity, unit, write_units=_amount, write_cents=_words)


def _units_and_cents(
    quantity: str, unit: str, *, write_units: Callable[[int], str], write_cents: Callable[[int], str]
) -> str:
    whole, _, fraction = quantity.partition(".")
    units, cents = int(whole or 0), int(fraction or 0)  # ".5" is five cents, as published
    parts = [f"{write_units(units)} {unit}{'s' * (units != 1)}"] if units else []
    parts += [f"{write_cents(cents)} cent{'s' * (cents != 1)}"] if cents else []
    return ", ".join(parts) or f"zero {unit}s"


def _year(number: int) -> str:
    """Read a number from 1001 to 2999 in pairs of digits."""
    if number == 2000:
        return "two thousand"
    if 2000 < number < 2010:
        return "two thousand " + _words(number % 100)
    first, last = divmod(number, 100)
    return f"{_words(first)} {('oh ' if last < 10 else '') + _words(last) if last else 'hundred'}"


@lru_cache(maxsize=65536)
def _cardinal(number: int) -> str:
    if _reads_in_hundreds(number):
        return _words(number // 100) + " hundred"
    if 1000 < number < 3000:
        return _year(number).replace("-", " ")
    return _words(number).replace("-", " ").replace(",", "")


def _cardinal_of_tacotron2(number: int) -> str:
    return _year(number) if 1000 < number < 3000 else _words(number).replace(" and ", " ")


def _read_digits(digits: str, cardinal: Callable[[int], str]) -> str:
    return cardinal(int(digits)) if len(digits) <= _MOST_DIGITS else " ".join(_words(int(digit)) for digit in digits)


def _number(match: re.Match) -> str:
    """Read a whole number with a plural or possessive "s" at its end: "1990s" -> "nineteen nineties"."""
    words, suffix = _read_digits(match[1], _cardinal), match[2]
    if suffix is None:
        return words
    return words[:-1] + "ies" if words.endswith("y") else words + suffix


def _dollars(match: re.Match) -> str:
    """Write the units of an amount after its digits, which are read later: "$3.50" -> "3 dollars, 50 cents"."""
    quantity = match[1].replace(",", "")
    if quantity.count(".") > 1 or len(quantity) > _MOST_DIGITS:
        return f"{quantity} dollars"
    return _units_and_cents(quantity, "dollar", write_units=str, write_cents=str)


def _ordinal(match: re.Match) -> str:
    return named(int(match[0][:-2]), to="ordinal")


# Amounts of dollars, pounds, euros and won, with magnitudes (million, m, b, t).
expand_currency = rules("published_currency", amount=_amount_words)
# As published, digits after a decimal point are read as one whole number ("10.05" is "ten point five"), and any number
# from 1001 to 2999 as a year ("1010 houses" is "ten ten houses").
expand_numbers = rules("published_numbers", amount=_amount_words, ordinal=_ordinal, number=_number)
# Dollars are the only currency, hundreds have no "and", "twenty-one" keeps its hyphen, "1980s" is "nineteen eightys".
expand_numbers_of_tacotron2 = rules(
    "tacotron2_numbers",
    dollars=_dollars,
    ordinal=_ordinal,
    number=lambda match: _read_digits(match[0], _cardinal_of_tacotron2),
)


# FastPitch 1.1's own table, derived from an MIT-licensed one: ASCII, and the characters that it replaces.
_WRITTEN = json.loads((Path(__file__).parent / "ascii.json").read_text(encoding="utf-8"))
_TABLE = {one: written for written, characters in _WRITTEN.items() for one in characters}

_UNITS = word_table("published_units")
_ENDINGS = ("'s", "s", "th", "nd", "st", "rd")


def to_ascii(text: str) -> str:
    """Convert text with the table; what the table lacks is dropped: dashes, "…", "œ", "½", scripts of Asia, emoji."""
    return text if text.isascii() else "".join(one if one.isascii() else _TABLE.get(one, "") for one in text)


def left_out(text: str) -> list[str]:
    """Return the letters, numbers and signs of ``text`` that ``to_ascii`` drops; punctuation isn't spoken."""
    lost = [one for one in text if not one.isascii() and one not in _TABLE]
    return [one for one in lost if unicodedata.category(one)[0] in "LNS"]


def _unit(match: re.Match) -> str:
    quantity, unit = match[1], _UNITS[match[2].lower()]
    several = not unit.endswith("z") and float(quantity.replace(",", "")) > 1
    return f"{quantity} {unit}{'s' if several else ''}"


def _pairs(digits: str) -> list[str]:
    """Split up to four digits into groups as they are read: 264 -> 2 64, 2490 -> 24 90, 101 -> 1 0 1, 500 -> 500."""
    if len(digits) > 4:
        return [digits]
    if len(digits) > 2 and digits[-2] == "0":
        return [digits] if digits[-1] == "0" else [digits[:-2], digits[-2], digits[-1]]
    first = len(digits) % 2
    return [*([digits[:first]] if first else []), *(digits[i : i + 2] for i in range(first, len(digits), 2))]


def _mixed(match: re.Match) -> str:
    """Split "H264" -> "H 2 64", "B2B" -> "B 2 B"; ordinals and decades ("1st", "1990s") stay as they are."""
    parts = [part for part in re.split(r"(\d+)", match[0]) if part]
    if parts[-1] in _ENDINGS and parts[-2].isdigit():
        parts[-2:] = [parts[-2] + parts[-1]]
    groups = [group for part in parts for group in (_pairs(part) if part.isdigit() else [part])]
    return " ".join(groups)


# "7:30 am" is "7 30 a.m."; the sentence's own full stop then follows a second one, as published (quirk 8).
expand_times = rules("published_times")
# Units of memory, frequency and length, dimensions ("3 x 5"), and splitting letters from digits.
expand_letters_and_numbers = rules("published_units_and_letters", unit=_unit, mixed=_mixed)
# Every run of two or more capitals letter by letter, words included: "WHY" -> "W.H.Y." (quirk 2).
spell_acronyms = rules("published_acronyms", spelled=lambda match: ".".join(match[1]) + "." + "'s" * bool(match[2]))
expand_titles = rules("published_title_rules")  # the only abbreviations that Tacotron 2 knows
# The rules for "No. 7" and "½" never apply after the number and transliteration steps, as published (quirk 2); they
# matter only to a caller that skips those steps.
expand_abbreviations = rules("published_signs", "published_title_rules", "published_abbreviation_rules")
