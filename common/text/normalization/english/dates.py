"""Dates, years and decades ("Jan. 5, 1776", "1914-1918", "the '90s"), and times of day ("5 pm", "17:45") and ratios."""

import re

from common.text.normalization.english.pronunciation import spell
from common.text.normalization.numbers import identifier, number_words, ordinal, written_year, year
from common.text.normalization.rules import rules
from common.text.tables import compiled, table_text

MONTHS = tuple(table_text("month_names").lower().split("|"))
_YEAR_BEFORE = compiled(r"(?i)\b(?:<before_years>|<month_names>)[,(]?\s\(?$")
_PLURAL_AFTER = re.compile(r"\s(?:[a-z]+\s)?(?:people|men|women|children|feet|[a-z]{2,}(?<!s)(?<!u)(?<!i)s)\b")
_NOT_PLURAL = re.compile(r"\s(?:was|is|has|does|his|its|this|as|us|goes|marks|sees|saw)\b")


def _numeric_date(match: re.Match) -> str:
    """3/4/2021 is March the fourth (month first), unless only the other order is a date: 25/12/2020."""
    month, day, number = int(match[1]), int(match[3]), match[4]
    if month > 12 or match[2] == ".":  # dots are the European order
        month, day = day, month
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return match[0]
    return f"{MONTHS[month - 1]} {ordinal(day)} {written_year(number)}"


def _years(match: re.Match) -> str:
    """ "1914-1918" and "1939-45"; other pairs of numbers are left to the rule for ranges."""
    first, second = match[1], match[2]
    if len(second) == 2:
        if int(second) <= int(first[2:]) or int(first) > 2099:
            return match[0]
    elif not 1000 <= int(first) < int(second) < 2100:
        return match[0]
    return f"{year(first)} to {written_year(second)}"


def _season(match: re.Match) -> str:
    """ "1999/2000" and "2019/20": two years that follow each other; anything else stays a fraction."""
    first, second = int(match[1]), match[2]
    if (first + 1) % (100 if len(second) == 2 else 10000) != int(second):
        return match[0]
    return f"{year(first)} {written_year(second)}"


def _bare_year(match: re.Match) -> str:
    """Four digits without a comma are a year, "twenty ten", unless they count something: "1905 people"."""
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


read_dates = rules("dates", numeric_date=_numeric_date, season=_season, month=lambda number: MONTHS[int(number) - 1])
read_years = rules("years", years=_years, bare_year=_bare_year)
read_times = rules("time_zones", "half_day_times", "clock_times", zone=spell)
