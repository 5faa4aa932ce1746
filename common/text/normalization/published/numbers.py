"""How the published cleaners read numbers: cardinals, years in pairs, decimals, ordinals, currency, Roman numerals."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from common.text.normalization.english.numbers import roman

if TYPE_CHECKING:
    import inflect

_CURRENCIES = {"$": "dollar", "£": "pound", "€": "euro", "₩": "won"}
_MAGNITUDES = {"m": "million", "b": "billion", "t": "trillion"}

_CURRENCY = re.compile(
    r"([$€£₩])([0-9.,]*[0-9]+)(?:[ ]?(trillion|billion|million|thousand|hundred|m|b|t)(?=[^a-zA-Z]))?", re.IGNORECASE
)
_DOLLARS = re.compile(r"\$([0-9.,]*[0-9]+)")
_COMMAS = re.compile(r"[0-9][0-9,]+[0-9]")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]+")
_MOST_DIGITS = 36  # of a number that inflect can name; longer ones are read digit by digit
_ORDINAL = re.compile(rf"(?<![0-9])[0-9]{{1,{_MOST_DIGITS}}}(?:st|nd|rd|th)")
# Only numerals that end in II, III, IV, VII, VIII or IX: the published rule means to leave the pronoun I alone,
# and so misses VI and XX as well, and takes MIX for a number.
_ROMAN = re.compile(r"\b(?=[MDCLXVI]+\b)M{0,4}(CM|CD|D?C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{2,3})\b")
_MULTIPLY = re.compile(r"\b([0-9]+)x([0-9]+)")
_NUMBER = re.compile(r"([0-9]+)('s|s)?")
_DIGITS = re.compile(r"[0-9]+")


@lru_cache(maxsize=1)
def _engine() -> "inflect.engine":
    # Imported here: it takes seconds, which a command whose text has no numbers need not wait for.
    import inflect

    return inflect.engine()


@lru_cache(maxsize=65536)
def _words(number: int | str, **form: Any) -> str:
    """inflect's words of a number; ``form`` are its options."""
    return cast(str, _engine().number_to_words(cast(Any, number), **form))  # its types: also lists, no int


def _reads_in_hundreds(number: float) -> bool:
    """Whether "fifteen hundred" is said; as published, of every multiple of 100 above 1000, however large."""
    return number > 1000 and number % 100 == 0 and number % 1000 != 0


def _amount(quantity: int | str) -> str:
    """An amount of money, of which only those below 10,000 read in hundreds, as published."""
    number = float(quantity)
    in_hundreds = number < 10000 and _reads_in_hundreds(number)
    return _words(int(number / 100)) + " hundred" if in_hundreds else _words(quantity)


def _expand_one_amount(match: re.Match) -> str:
    """Write out "$2.50" as "two dollars, fifty cents" and "£1,250.99" as pounds and cents (published, exactly)."""
    unit, magnitude = _CURRENCIES[match[1]], match[3]
    quantity = match[2].replace(",", "")
    if quantity.count(".") > 1 or len(quantity) > _MOST_DIGITS:  # no amount; its digits are read later
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


def expand_currency(text: str) -> str:
    """Write out amounts of dollars, pounds, euros and won, with magnitudes (million, m, b, t)."""
    return _CURRENCY.sub(_expand_one_amount, text)


def _year(number: int) -> str:
    """A number from 1001 to 2999 in pairs of digits."""
    if number == 2000:
        return "two thousand"
    if 2000 < number < 2010:
        return "two thousand " + _words(number % 100)
    if number % 100 == 0:
        return _words(number // 100) + " hundred"
    return _words(number, andword="", zero="oh", group=2).replace(", ", " ")


@lru_cache(maxsize=65536)
def _cardinal(number: int) -> str:
    if _reads_in_hundreds(number):
        return _words(number // 100) + " hundred"
    if 1000 < number < 3000:
        return _year(number).replace("-", " ")
    return _words(number).replace("-", " ").replace(",", "")


def _cardinal_of_tacotron2(number: int) -> str:
    return _year(number) if 1000 < number < 3000 else _words(number, andword="")


def _read_digits(digits: str, cardinal: Callable[[int], str]) -> str:
    return cardinal(int(digits)) if len(digits) <= _MOST_DIGITS else " ".join(_words(int(digit)) for digit in digits)


def _expand_number(match: re.Match) -> str:
    """A whole number with the plural or possessive "s" that stands at its end: "1990s" -> "nineteen nineties"."""
    words, suffix = _read_digits(match[1], _cardinal), match[2]
    if suffix is None:
        return words
    return words[:-1] + "ies" if words.endswith("y") else words + suffix


def _without_commas(text: str) -> str:
    return _COMMAS.sub(lambda match: match[0].replace(",", ""), text)


def _expand_points_and_ordinals(text: str) -> str:
    text = _DECIMAL.sub(lambda match: match[0].replace(".", " point "), text)
    return _ORDINAL.sub(lambda match: _words(match[0]), text)


def expand_numbers(text: str) -> str:
    """Write out every number.

    As published, digits after a decimal point are read as one whole number ("10.05" is "ten point five"), and
    any number from 1001 to 2999 as a year ("1010 houses" is "ten ten houses").
    """
    text = _expand_points_and_ordinals(expand_currency(_without_commas(text)))
    text = _ROMAN.sub(lambda match: str(roman(match[0])), text)
    text = _MULTIPLY.sub(r"\1 by \2", text)
    return _NUMBER.sub(_expand_number, text)


def _expand_dollars(match: re.Match) -> str:
    """Write the units of an amount after its digits, which are read later: "$3.50" -> "3 dollars, 50 cents"."""
    quantity = match[1].replace(",", "")
    if quantity.count(".") > 1 or len(quantity) > _MOST_DIGITS:
        return f"{quantity} dollars"
    return _units_and_cents(quantity, "dollar", write_units=str, write_cents=str)


def expand_numbers_of_tacotron2(text: str) -> str:
    """Write out every number as the original Tacotron 2 does.

    Dollars are the only currency, hundreds have no "and", "twenty-one" keeps its hyphen, and "1980s" is "nineteen
    eightys".
    """
    text = _expand_points_and_ordinals(_DOLLARS.sub(_expand_dollars, _without_commas(text)))
    return _DIGITS.sub(lambda match: _read_digits(match[0], _cardinal_of_tacotron2), text)
