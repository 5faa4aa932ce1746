"""Read dates, times and other numbers: telephone numbers, codes, fractions, ranges, versions, letters with digits."""

import re

from common.text.normalization.english.pronunciation import is_spelled, spell
from common.text.normalization.english.quantities import LOOSE_UNITS, QUANTITIES, full_stop, several_units, unit_name
from common.text.normalization.numbers import (
    cardinal,
    digits,
    identifier,
    number_words,
    ordinal,
    plural,
    written_year,
    year,
)
from common.text.normalization.rules import rules
from common.text.tables import compiled, table_text

_PIECES = re.compile(r"[0-9]+|[A-Za-z]+")
_HALVES = {2: "half", 3: "third", 4: "quarter"}
_FRACTION_DENOMINATORS = frozenset([*range(2, 11), 12, 16, 32, 64])  # others only after one: "one twentieth"


def _telephone(match: re.Match) -> str:
    text = match[0]
    if re.fullmatch(r"[0-9]{2}0-[0-9]{2}00", text):  # 200-1000, a range of round numbers
        return text
    if text[0] == "+" and sum(map(str.isdigit, text)) < 7:
        return text
    return ("plus " if text[0] == "+" else "") + digits(text)


def _denominator(number: int, several: bool) -> str:
    word = _HALVES.get(number) or ordinal(number).removeprefix("one ")
    if not several:
        return word
    return "halves" if number == 2 else word + "s"


def _mixed_fraction(match: re.Match) -> str:
    """ "2 1/2" -> "two and a half", "5 3/8" -> "five and three eighths"."""
    above, below = int(match[2]), int(match[3])
    if below < 2 or above >= below:
        return match[0]
    count = ("an" if below in (8, 11, 18) else "a") if above == 1 else cardinal(above)
    unit = f" {several_units(unit_name(match[4]))}{full_stop(match, bool(match[5]))}" if match[4] else ""
    return f"{number_words(match[1])} and {count} {_denominator(below, above > 1)}{unit}"


def _fraction(match: re.Match) -> str:
    """ "3/4" -> "three quarters", "9.5/10" -> "nine point five out of ten", "15/7" -> "fifteen over seven"."""
    above, below = match[1], match[2]
    if above.isdigit() and below.isdigit() and len(above) < 5 and len(below) < 5:
        if 0 < int(above) < int(below) and (int(above) == 1 or int(below) in _FRACTION_DENOMINATORS):
            return f"{cardinal(above)} {_denominator(int(below), int(above) > 1)}"
        if int(above) < int(below):
            return f"{number_words(above)} out of {number_words(below)}"
    joint = "out of" if below in ("5", "10", "20", "100") else "over"
    return f"{number_words(above)} {joint} {number_words(below)}"


def _part_of_unit(match: re.Match) -> str:
    """ "3/4 tsp" -> "three quarters of a teaspoon", "1/2 oz" -> "one half ounce"."""
    above, below, unit, stop = match.groups()
    fits = 0 < int(above) < int(below) and int(below) in _FRACTION_DENOMINATORS and unit not in LOOSE_UNITS
    if not fits:
        return match[0]
    name = unit_name(unit)
    joint = " of an " if name[0] in "aeio" else " of a "
    part = f"{cardinal(above)} {_denominator(int(below), int(above) > 1)}"
    return f"{part}{' ' if above == '1' else joint}{name}{full_stop(match, bool(stop))}"


def _piece(piece: str) -> str:
    if piece.isdigit():
        return identifier(piece)
    if piece.isupper() and len(piece) > 1 and (len(piece) < 4 or is_spelled(piece)):
        return spell(piece)
    return piece.lower()


def _mixed(match: re.Match) -> str:
    """Read letters with digits: "B2B" -> "b two b", "MP3" -> "m.p. three", "12B" -> "twelve b", "iPhone12"."""
    text = match[0]
    if text[-1] == "s" and text[:-1].isdigit():  # "7s": several sevens
        return plural(number_words(text[:-1]))
    possessive = bool(re.match(r"s\b", text[-1])) and text[-2].isdigit() and not text[0].isdigit()
    pieces = _PIECES.findall(text[:-1] if possessive else text)
    return " ".join(map(_piece, pieces)) + ("s" if possessive else "")


def _count(match: re.Match) -> str:
    """Read a number, with spaces where it would touch letters: "100-meter" keeps its hyphen."""
    before, after = match.string[: match.start()][-1:], match.string[match.end() :][:1]
    left, right = " " if before.isalnum() else "", " " if after.isalnum() or after == "(" else ""
    return f"{left}{number_words(match[0])}{right}"


read_forms = rules("emoticons", "written_forms", "algebra")

_MONTHS = tuple(table_text("month_names").lower().split("|"))
_YEAR_BEFORE = compiled(r"(?i)\b(?:<before_years>|<month_names>)[,(]?\s\(?$")
_PLURAL_AFTER = re.compile(r"\s(?:[a-z]+\s)?(?:people|men|women|children|feet|[a-z]{2,}(?<!s)(?<!u)(?<!i)s)\b")
_NOT_PLURAL = re.compile(r"\s(?:was|is|has|does|his|its|this|as|us|goes|marks|sees|saw)\b")


def _numeric_date(match: re.Match) -> str:
    """Read 3/4/2021 as March the fourth (month first), unless only the other order is a date: 25/12/2020."""
    month, day, number = int(match[1]), int(match[3]), match[4]
    if month > 12 or match[2] == ".":  # dots mean the European order
        month, day = day, month
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return match[0]
    return f"{_MONTHS[month - 1]} {ordinal(day)} {written_year(number)}"


def _years(match: re.Match) -> str:
    """Read "1914-1918" and "1939-45"; other pairs of numbers are left to the rule for ranges."""
    first, second = match[1], match[2]
    if len(second) == 2:
        if int(second) <= int(first[2:]) or int(first) > 2099:
            return match[0]
    elif not 1000 <= int(first) < int(second) < 2100:
        return match[0]
    return f"{year(first)} to {written_year(second)}"


def _season(match: re.Match) -> str:
    """Read "1999/2000" and "2019/20" as consecutive years; anything else stays a fraction."""
    first, second = int(match[1]), match[2]
    if (first + 1) % (100 if len(second) == 2 else 10000) != int(second):
        return match[0]
    return f"{year(first)} {written_year(second)}"


def _bare_year(match: re.Match) -> str:
    """Read four digits without a comma as a year, "twenty ten", unless they count something: "1905 people"."""
    number = int(match[1])
    text, end = match.string, match.end()
    in_year = _YEAR_BEFORE.search(text[max(0, match.start() - 12) : match.start()]) is not None
    counts = _PLURAL_AFTER.match(text, end) is not None and _NOT_PLURAL.match(text, end) is None
    if not in_year and counts and number % 100:
        return number_words(match[1])
    if number < 2100 and (number >= 1010 or in_year):
        return year(number)
    if in_year and number < 3000 and number % 100:
        return identifier(match[1])
    return match[1]


# Every rule that reads digits, from the most specific to the most general.
read_numbers = rules(
    *("dates", "time_zones", "half_day_times", "clock_times", "labelled_numbers", "money", "fractions"),
    *("dimensions", "heights", "measures", "years", "codes", "powers", "counts"),
    numeric_date=_numeric_date,
    season=_season,
    month=lambda number: _MONTHS[int(number) - 1],
    zone=spell,
    telephone=_telephone,
    mixed_fraction=_mixed_fraction,
    part_of_unit=_part_of_unit,
    fraction=_fraction,
    years=_years,
    bare_year=_bare_year,
    version=lambda match: " point ".join(map(number_words, match[1].split("."))),
    mixed=_mixed,
    count=_count,
    **QUANTITIES,
)
