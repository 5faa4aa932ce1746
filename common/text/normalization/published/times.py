"""How the published ``english_cleaners_v2`` reads times of day: only those with am or pm."""

import re

_AM_PM = re.compile(r"([0-9]|0[0-9]|1[0-9]|2[0-3]):?([0-5][0-9])?\s*([AaPp])[Mm]\b")


def _expand_time(match: re.Match) -> str:
    minutes = "" if match[2] is None or match[2] == "00" else " " + match[2]
    return f"{match[1]}{minutes} {match[3].lower()}.m."


def expand_times(text: str) -> str:
    """Write "7:30 am" as "7 30 a.m."; a sentence's own full stop then follows a second one, as published (quirk 8)."""
    return _AM_PM.sub(_expand_time, text)
