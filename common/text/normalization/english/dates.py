"""Dates, years and decades ("Jan. 5, 1776", "1914-1918", "the '90s"), and times of day ("5 pm", "17:45") and ratios."""

import re

from common.text.normalization.english.numbers import (
    cardinal,
    identifier,
    number_words,
    ordinal,
    plural,
    two_digits,
    year,
)
from common.text.tables import word_pattern

_NAMES = "january february march april may june july august september october november december"
MONTHS = tuple(_NAMES.split())
# In lower case "may" and "march" are other words far more often.
_MONTH_NAMES = [name.capitalize() for name in MONTHS] + [name.upper() for name in MONTHS]
_MONTH = rf"({'|'.join([*_MONTH_NAMES, *(name for name in MONTHS if name not in ('may', 'march'))])})"
_DAY = r"(0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?"
_YEAR = r"([12][0-9]{3})"
_END = r"(?![\w]|[.,:/][0-9]|-[0-9])"

_ISO = re.compile(rf"(?<![\w.-]){_YEAR}([-/])(0[1-9]|1[0-2])\2(0[1-9]|[12][0-9]|3[01]){_END}")
_NUMERIC = re.compile(rf"(?<![\w./-])([0-9]{{1,2}})([/.-])([0-9]{{1,2}})\2({_YEAR[1:-1]}|[0-9]{{2}}){_END}")
_MONTH_FIRST = re.compile(rf"\b{_MONTH}\s{_DAY}(?:\s?-\s?{_DAY})?{_END}(?:(,?)\s{_YEAR}{_END})?")
_DAY_FIRST = re.compile(
    rf"(\b[Tt]he\s)?(?<![\w.,/:-]){_DAY}(?:\s?-\s?{_DAY})?\s(?:of\s)?{_MONTH}\b(?:(,?)\s{_YEAR}{_END})?"
)
_MONTH_YEAR = re.compile(rf"\b{_MONTH}(,?\s(?:of\s)?){_YEAR}{_END}")
_DECADE = re.compile(r"(?<![\w.,])(?:([12][0-9]{2}0)'?s|'?([1-9]0)'?s)\b")
_SHORT_YEAR = re.compile(r"(?<![\w'])'([0-9]{2})\b(?!['\"][0-9]|\s?(?:%|ft|in)\b|')")
_ERA = re.compile(r"(?<![\w.,])([0-9]{1,4})\s?(?=(?:B\.?C\.?(?:E\.?)?|A\.?D\.?|C\.?E\.)(?![A-Za-z]))")
_AD = re.compile(r"\b(A\.?D\.?\s)([0-9]{1,4})\b(?![.,][0-9])")
_SPAN = re.compile(rf"(?<![\w.,$£€/-])([1-9][0-9]{{3}})\s?-\s?([1-9][0-9]{{3}}|[0-9]{{2}}){_END}")
_SEASON = re.compile(r"(?<![\w.,$£€/-])([12][0-9]{3})/([12][0-9]{3}|[0-9]{2})(?![\w/]|[.,][0-9])")
_BARE_YEAR = re.compile(r"(?<![\w.,$£€¥₩₹/:+-])([1-9][0-9]{3})(?![\w%°/]|[.,:][0-9]|-[0-9])")
_YEAR_BEFORE = re.compile(rf"\b(?:{word_pattern('before_years')}|{'|'.join(MONTHS)})[,(]?\s\(?$", re.IGNORECASE)
_PLURAL_AFTER = re.compile(r"\s(?:[a-z]+\s)?(?:people|men|women|children|feet|[a-z]{2,}(?<!s)(?<!u)(?<!i)s)\b")
_NOT_PLURAL = re.compile(r"\s(?:was|is|has|does|his|its|this|as|us|goes|marks|sees|saw)\b")


def _day_words(day: str, last: str | None) -> str:
    words = ordinal(int(day))
    return f"{words} to {ordinal(int(last))}" if last else words


def _year_words(comma: str | None, number: str | None) -> str:
    return f"{comma or ''} {year(int(number))}" if number else ""


def _read_numeric(match: re.Match) -> str:
    """3/4/2021 is March the fourth (month first), unless only the other order is a date: 25/12/2020."""
    month, day, number = int(match[1]), int(match[3]), match[4]
    if month > 12 or match[2] == ".":  # dots are the European order
        month, day = day, month
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return match[0]
    return f"{MONTHS[month - 1]} {ordinal(day)} {_written_year(number)}"


def _written_year(digits: str) -> str:
    """A year of four or two digits: "05" -> "oh five"."""
    return year(int(digits)) if len(digits) == 4 else two_digits(int(digits))


def _read_span(match: re.Match) -> str:
    """ "1914-1918" and "1939-45"; other pairs of numbers are left to the rule for ranges."""
    first, second = match[1], match[2]
    if len(second) == 2:
        if int(second) <= int(first[2:]) or int(first) > 2099:
            return match[0]
    elif not 1000 <= int(first) < int(second) < 2100:
        return match[0]
    return f"{year(int(first))} to {_written_year(second)}"


def _read_season(match: re.Match) -> str:
    """ "1999/2000" and "2019/20": two years that follow each other; anything else stays a fraction."""
    first, second = int(match[1]), match[2]
    if (first + 1) % (100 if len(second) == 2 else 10000) != int(second):
        return match[0]
    return f"{year(first)} {_written_year(second)}"


def _read_bare_year(match: re.Match) -> str:
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


def read_dates(text: str) -> str:
    """Write out dates, years, spans of years and decades."""
    text = _ISO.sub(lambda m: f"{MONTHS[int(m[3]) - 1]} {ordinal(int(m[4]))} {year(int(m[1]))}", text)
    text = _NUMERIC.sub(_read_numeric, text)
    text = _SEASON.sub(_read_season, text)
    text = _MONTH_FIRST.sub(lambda m: f"{m[1].lower()} {_day_words(m[2], m[3])}{_year_words(m[4], m[5])}", text)
    text = _DAY_FIRST.sub(lambda m: f"the {_day_words(m[2], m[3])} of {m[4].lower()}{_year_words(m[5], m[6])}", text)
    return _MONTH_YEAR.sub(lambda match: f"{match[1].lower()}{match[2]}{year(int(match[3]))}", text)


def read_years(text: str) -> str:
    """Write out decades, spans of years, eras and bare years; after everything else that may hold four digits."""
    text = _DECADE.sub(lambda m: plural(year(int(m[1])) if m[1] else two_digits(int(m[2]))), text)
    text = _SHORT_YEAR.sub(lambda match: two_digits(int(match[1])), text)
    text = _AD.sub(lambda match: match[1] + year(int(match[2])), text)
    text = _ERA.sub(lambda match: year(int(match[1])) + " ", text)
    text = _SPAN.sub(_read_span, text)
    return _BARE_YEAR.sub(_read_bare_year, text)


_AM_PM = r"\s?([ap])(?:\.\s?m\.|\.?m\b\.?)"
_HALF_DAY_RANGE = re.compile(
    rf"(?<![\w:.,$£€])([01]?[0-9]|2[0-3])(?::([0-5][0-9]))?(?:{_AM_PM})?\s?-\s?"
    rf"([01]?[0-9]|2[0-3])(?:[:.]([0-5][0-9]))?{_AM_PM}(?!\w)",
    re.IGNORECASE,
)
_HALF_DAY = re.compile(rf"(?<![\w:.,$£€])([01]?[0-9]|2[0-3])(?:[:.]([0-5][0-9]))?{_AM_PM}(?!\w)", re.IGNORECASE)
_CLOCK_RANGE = re.compile(
    r"(?<![\w:.])([01]?[0-9]|2[0-4]):([0-5][0-9])\s?-\s?([01]?[0-9]|2[0-4]):([0-5][0-9])(?![\w:])"
)
_CLOCK = re.compile(r"(?<![\w:.,])([01]?[0-9]|2[0-4]):([0-5][0-9])(?::([0-5][0-9]))?(?![\w:]|\.[0-9])")
_RATIO = re.compile(r"(?<![\w:.])([0-9]{1,4}):([0-9]{1,4})(?![\w:]|\.[0-9])")


def _clock(hours: str, minutes: str | None) -> str:
    """24-hour or 12-hour time without a.m. or p.m.: "twelve o'clock", "seventeen forty five", "eighteen hundred"."""
    hour = int(hours)
    if minutes is None:
        return cardinal(hour)
    if int(minutes) == 0 and hour in (0, 24):
        return "midnight"
    if int(minutes) == 0 and hour <= 12:
        return f"{cardinal(hour)} o'clock"
    return f"{cardinal(hour)} {two_digits(int(minutes))}"


def _half_day_time(hours: str, minutes: str | None, half: str | None) -> str:
    words = cardinal(int(hours))
    if minutes is not None and int(minutes):
        words += " " + two_digits(int(minutes))
    return f"{words} {half.lower()}.m." if half else words


def _read_clock(match: re.Match) -> str:
    if not match[3]:
        return _clock(match[1], match[2])
    minutes = "oh zero" if match[2] == "00" else two_digits(int(match[2]))
    return f"{cardinal(int(match[1]))} {minutes} and {cardinal(int(match[3]))} seconds"


def read_times(text: str) -> str:
    """Write out times of day, then ratios: "12:00" -> "twelve o'clock", "5:30 p.m." -> "five thirty p.m."."""
    text = _HALF_DAY_RANGE.sub(
        lambda m: f"{_half_day_time(*m.group(1, 2, 3))} to {_half_day_time(*m.group(4, 5, 6))}", text
    )
    text = _HALF_DAY.sub(lambda match: _half_day_time(*match.groups()), text)
    if ":" not in text:
        return text
    text = re.sub(r"(:[0-5][0-9])\s+o'?clock\b", r"\1", text)
    text = _CLOCK_RANGE.sub(lambda m: f"{_clock(m[1], m[2])} to {_clock(m[3], m[4])}", text)
    text = _CLOCK.sub(_read_clock, text)
    return _RATIO.sub(lambda match: f"{cardinal(int(match[1]))} to {cardinal(int(match[2]))}", text)
