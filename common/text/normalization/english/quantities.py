"""Amounts of money and of units: "£3.50", "$3.5 million", "99p", "5 km", "20°C", "5'11\"", "3 x 5", "50%", "60 mph"."""

import re
from collections.abc import Callable
from typing import NamedTuple

from common.text.normalization.numbers import cardinal, number_words, year
from common.text.normalization.rules import rules
from common.text.tables import compiled, word_table


class _Currency(NamedTuple):
    one: str
    several: str
    hundredth: str = ""  # "" for a currency without a smaller unit
    hundredths: str = ""


_CURRENCIES = {
    key: _Currency(*names.split("/"))
    for table in ("currencies", "currency_codes", "currency_words")
    for key, names in word_table(table).items()
}
_COUNTRIES = word_table("dollar_countries")
_MAGNITUDES = word_table("magnitudes")
_DESCRIBED = compiled(r"\s(?:<amount_nouns>)s?\b|-[A-Za-z]")

_UNITS = word_table("units")
# Letters that also follow a number for other reasons (5 m is a length, but "2 g", "6 s", "12 V"): units only without a
# space or before a mark, never before a word that would make them a name.
LOOSE_UNITS = frozenset("s V W L N J us sec cal kn Pa bar atm mol cd ly cc lm".split())
_PER = word_table("units") | word_table("per_units")
_PER_PART = re.compile(r"/\s?([0-9]*)\s?([A-Za-z]+)\^?([23]?)")
_POWERS = {"": "", "2": "square ", "3": "cubic ", "^2": "square ", "^3": "cubic "}
_SCALES = word_table("degree_scales")
_LEADING_NUMBER = compiled("^<NUMBER>")
_SINGULAR_AFTER = compiled(r"\s(?!(?:<after_units>)\b)[a-z]")
_ARTICLE_BEFORE = compiled(r"(?i)\b(?:<determiners>)\s$")


def _amount(quantity: str, magnitude: str | None, currency: _Currency, *, singular: bool = False) -> str:
    """Read one amount; ``singular`` before a noun, "a five dollar bill"."""
    several = currency.one if singular else currency.several
    if magnitude:
        return f"{number_words(quantity)} {_MAGNITUDES[magnitude.lower()]} {several}"
    whole, _, fraction = quantity.replace(",", "").partition(".")
    whole = whole or "0"
    units = f"{number_words(whole)} {currency.one if whole.lstrip('0') == '1' else several}"
    if not fraction.strip("0"):
        return units
    if len(fraction) != 2 or not currency.hundredth:
        return f"{number_words(quantity)} {several}"
    small = int(fraction)
    change = f"{cardinal(small)} {currency.hundredth if small == 1 else currency.hundredths}"
    return f"{units} {change}" if whole.strip("0") else change


def _amounts(match: re.Match) -> str:
    """Read one amount, or a range: "$5-10 million", "a US$5 bill", "-£3/hour"."""
    minus, country, sign, quantity, sign_2, quantity_2, magnitude, per = match.groups()
    currency = _CURRENCIES[sign]
    if country:
        country = _COUNTRIES.get(country.upper(), country) if sign == "$" else country
        currency = currency._replace(one=f"{country} {currency.one}", several=f"{country} {currency.several}")
    after = match.string[match.end() :]
    is_described = _ARTICLE_BEFORE.search(match.string[: match.start()][-9:]) and _SINGULAR_AFTER.match(after)
    singular = bool(is_described or _DESCRIBED.match(after))
    if quantity_2 is None:
        words = _amount(quantity, magnitude, currency, singular=singular)
    elif sign_2 is None:  # the unit and magnitude belong to the whole range
        words = f"{number_words(quantity)} to {_amount(quantity_2, magnitude, currency, singular=singular)}"
    else:
        words = f"{_amount(quantity, None, currency)} to {_amount(quantity_2, magnitude, _CURRENCIES[sign_2])}"
    return ("minus " if minus else "") + words + (" per " if per else "")


def several_units(unit: str) -> str:
    """ "mile per hour" -> "miles per hour"."""
    head, joint, rest = re.split("( per | of |$)", unit, maxsplit=1)
    if head.endswith("foot"):
        return head.removesuffix("foot") + "feet" + joint + rest
    if head.endswith("inch"):
        return head + "es" + joint + rest
    return head + ("" if head.endswith(("hertz", "horsepower", "lux", "dozen", "molar")) else "s") + joint + rest


def unit_name(written: str) -> str:
    """Return the name of one unit: "km" -> "kilometer", "sq ft" -> "square foot", "fl oz" -> "fluid ounce"."""
    kind = {"sq": "square ", "cu": "cubic ", "fl": "fluid "}.get(written[:2] if " " in written else "", "")
    name = written.split()[-1]
    return kind + ("inch" if name == "in" else _UNITS[name])


def _quantity(match: re.Match) -> str:
    """Read "5", "-5" or "5-10"."""
    sign, quantity, last = match.group(1, 2, 3)
    words = {"-": "minus ", "+": "plus "}.get(sign or "", "") + number_words(quantity)
    return f"{words} to {number_words(last)}" if last else words


def _is_one(match: re.Match, gap: str = "") -> bool:
    """Whether the unit is singular: after "1", or before a noun ("a 5 km run", "a 10-kg bag")."""
    if match.group(2, 3) == ("1", None) or gap == "-":
        return True
    after = _SINGULAR_AFTER.match(match.string[match.end() :])
    return after is not None and _ARTICLE_BEFORE.search(match.string[: match.start()]) is not None


def full_stop(match: re.Match, dotted: bool) -> str:
    """Return the full stop of an abbreviated unit if it also ends the sentence."""
    return "." if dotted and re.match(r"\s*$|\s+[A-Z]", match.string[match.end() :]) else ""


def _unit(match: re.Match) -> str:
    _, quantity, _, gap, name, power, per, stop = match.groups()
    if name in LOOSE_UNITS and gap != "" and (gap == "-" or re.match(r"\s[A-Za-z]", match.string[match.end() :])):
        return match[0]
    if name == "s" and gap == "" and not per and "." not in quantity:  # "10s" is the plural of ten; "0.5s" is a time
        return match[0]
    one = unit_name(name)
    unit = _POWERS.get(power or "", "") + (one if _is_one(match, gap) else several_units(one))
    for number, part, part_power in _PER_PART.findall(per):
        one = f"{_PER[part]} squared" if part == "s" and part_power else _POWERS[part_power] + _PER[part]
        unit += " per " + (f"{number_words(number)} {several_units(one)}" if number else one)
    return f"{_quantity(match)} {unit}{full_stop(match, bool(stop))}"


def _degrees(match: re.Match) -> str:
    scale = _SCALES.get((match[4] or match[5] or "").lower(), "")
    words = _quantity(match)
    if scale == "kelvin":
        return f"{words} kelvin"
    one = (match[2], match[3]) == ("1", None) or (not scale and _is_one(match))
    return f"{words} degree{'' if one else 's'} {scale}".rstrip()


def _side(text: str, *, inches: str) -> str:
    """Read one side of "1920x1080"; four digits are read in pairs, like years."""
    number = _LEADING_NUMBER.findall(text)[0]
    words = year(number) if re.fullmatch(r"[1-9][0-9]{3}", number) else number_words(number)
    unit = text[len(number) :].strip().lower().rstrip(".").replace("'", "ft")
    if unit in ("in", '"'):
        return f"{words} {inches}"
    return f"{words} {several_units(_UNITS[unit])}" if unit in _UNITS else f"{words} {unit}".strip()


def _dimensions(match: re.Match) -> str:
    joint = " times " if "*" in match[0] else " by "
    quote = "'" if match[3] and "'" not in match[1] else ""  # it ends with the last side
    sides = [side.strip() for side in re.split("[*xX]", match[0].removesuffix(quote))]
    are_several = all(side[-1] in 'n."' for side in sides) and not _ARTICLE_BEFORE.search(match.string[: match.start()])
    words = joint.join(_side(side, inches="inches" if are_several else "inch") for side in sides)
    return words + quote + full_stop(match, match[0].endswith("."))


def _inch_sign(match: re.Match) -> str:
    if match.string.count('"', 0, match.start()) % 2:  # the sign closes a quotation
        return match[0]
    return f"{number_words(match[1])} {'inch' if match[1] == '1' else 'inches'}"


# The functions that the rules for money, dimensions, heights and measures call.
QUANTITIES: dict[str, Callable[[re.Match], str]] = {
    "amounts": _amounts,
    "amount_before": lambda match: _amount(match[1], match[2], _CURRENCIES[match[3]]),
    "amount_after": lambda match: _amount(match[2], match[3], _CURRENCIES[match[1].upper()]),
    "cents": lambda match: _amount("0." + match[1].zfill(2), None, _CURRENCIES["$"]),
    "pence": lambda match: _amount("0." + match[1].zfill(2), None, _CURRENCIES["£"]),
    "inch_sign": _inch_sign,
    "quantity": _quantity,
    "degrees": _degrees,
    "dimensions": _dimensions,
    "unit": _unit,
}
read_bare_units = rules("bare_units", several=several_units)
