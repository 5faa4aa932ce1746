"""Times of day: "5 pm", "5:30 p.m.", "12:00", "17:45", and ratios and verses of the same form."""

import re

from common.text.normalization.english.numbers import cardinal, two_digits

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
_ENDS = re.compile(r"\s*[\"')]*\s*$|\s+[\"'(]*[A-Z](?![A-Z])")


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
