"""How the published cleaners read numbers: cardinals, years in pairs, decimals, ordinals, currency, Roman numerals."""

import re
from collections.abc import Callable
from functools import lru_cache

from common.text.normalization.numbers import digits, named
from common.text.normalization.rules import rules

_CURRENCIES = {"$": "dollar", "£": "pound", "€": "euro", "₩": "won"}
_MAGNITUDES = {"m": "million", "b": "billion", "t": "trillion"}

_MOST_DIGITS = 36  # of a number that has a name; longer ones are read digit by digit


def _words(number: int | str) -> str:
    """A number in words, decimals digit by digit: "2.50" -> "two point five zero"."""
    whole, point, fraction = str(number).partition(".")
    words = named(int(whole)) if whole else ""
    return f"{words} point {digits(fraction)}".strip() if point else words


def _reads_in_hundreds(number: float) -> bool:
    """Whether "fifteen hundred" is said; as published, of every multiple of 100 above 1000, however large."""
    return number > 1000 and number % 100 == 0 and number % 1000 != 0


def _amount(quantity: int | str) -> str:
    """An amount of money, of which only those below 10,000 read in hundreds, as published."""
    number = float(quantity)
    in_hundreds = number < 10000 and _reads_in_hundreds(number)
    return _words(int(number / 100)) + " hundred" if in_hundreds else _words(quantity)


def _amount_words(match: re.Match) -> str:
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


def _year(number: int) -> str:
    """A number from 1001 to 2999 in pairs of digits."""
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
    """A whole number with the plural or possessive "s" that stands at its end: "1990s" -> "nineteen nineties"."""
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


_SHARED: dict[str, Callable[[re.Match], str]] = {
    "without_commas": lambda match: match[0].replace(",", ""),
    "ordinal": lambda match: named(int(match[0][:-2]), to="ordinal"),
}
# Amounts of dollars, pounds, euros and won, with magnitudes (million, m, b, t).
expand_currency = rules("published_currency", amount=_amount_words)
# As published, digits after a decimal point are read as one whole number ("10.05" is "ten point five"), and any number
# from 1001 to 2999 as a year ("1010 houses" is "ten ten houses").
expand_numbers = rules("published_numbers", amount=_amount_words, number=_number, **_SHARED)
# Dollars are the only currency, hundreds have no "and", "twenty-one" keeps its hyphen, "1980s" is "nineteen eightys".
expand_numbers_of_tacotron2 = rules(
    "tacotron2_numbers",
    dollars=_dollars,
    number=lambda match: _read_digits(match[0], _cardinal_of_tacotron2),
    **_SHARED,
)
