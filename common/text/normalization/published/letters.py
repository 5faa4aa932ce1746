"""How the published ``english_cleaners_v2`` reads am and pm, units, dimensions, letters with digits, and acronyms."""

import re

from common.text.normalization.rules import rules
from common.text.tables import word_table

_AM_PM = re.compile(r"([0-9]|0[0-9]|1[0-9]|2[0-3]):?([0-5][0-9])?\s*([AaPp])[Mm]\b")
_UNITS = word_table("published_units")
_LENGTHS = {"m": "meter", "in": "inch", "inch": "inch"}
_UNIT = re.compile(rf"([0-9]+(?:[.,][0-9]+)?)\s?({'|'.join(_UNITS)})", re.IGNORECASE)
_SIDE = r"\d+(?:[,.]\d+)?"
_DIMENSIONS = re.compile(rf"\b({_SIDE}(?:\s*[xX]\s*{_SIDE}){{1,2}})(in|inch|m)?\b")
_BY = re.compile(r" [xX] |[xX]")
_MIXED = re.compile(r"(?:[a-zA-Z]+[0-9]|[0-9]+[a-zA-Z])[a-zA-Z0-9']*")
_ENDINGS = ("'s", "s", "th", "nd", "st", "rd")
_ACRONYM = re.compile(r"([A-Z]{2,})(s\b)?(?:(?<!s)\.)?")
_EXCEPTIONS = {"email": "e-mail", "NVIDIA": "n.vidia"}
_EXCEPTION = re.compile("|".join(_EXCEPTIONS))


def _expand_time(match: re.Match) -> str:
    minutes = "" if match[2] is None or match[2] == "00" else " " + match[2]
    return f"{match[1]}{minutes} {match[3].lower()}.m."


def expand_times(text: str) -> str:
    """Write "7:30 am" as "7 30 a.m."; a sentence's own full stop then follows a second one, as published (quirk 8)."""
    return _AM_PM.sub(_expand_time, text)


def _expand_unit(match: re.Match) -> str:
    quantity, unit = match[1], _UNITS[match[2].lower()]
    several = not unit.endswith("z") and float(quantity.replace(",", "")) > 1
    return f"{quantity} {unit}{'s' if several else ''}"


def _expand_dimensions(match: re.Match) -> str:
    sides = _BY.sub(" by ", match[1])
    return f"{sides} {_LENGTHS[match[2]]}" if match[2] else sides


def _pairs(digits: str) -> list[str]:
    """Up to four digits in the groups they are read in: 264 -> 2 64, 2490 -> 24 90, 101 -> 1 0 1, 500 -> 500."""
    if len(digits) > 4:
        return [digits]
    if len(digits) > 2 and digits[-2] == "0":
        return [digits] if digits[-1] == "0" else [digits[:-2], digits[-2], digits[-1]]
    first = len(digits) % 2
    return [*([digits[:first]] if first else []), *(digits[i : i + 2] for i in range(first, len(digits), 2))]


def _expand_mixed(match: re.Match) -> str:
    """Part "H264" -> "H 2 64", "B2B" -> "B 2 B"; ordinals and decades ("1st", "1990s") stay as they are."""
    parts = [part for part in re.split(r"(\d+)", match[0]) if part]
    if parts[-1] in _ENDINGS and parts[-2].isdigit():
        parts[-2:] = [parts[-2] + parts[-1]]
    groups = [group for part in parts for group in (_pairs(part) if part.isdigit() else [part])]
    return " ".join(groups)


def expand_letters_and_numbers(text: str) -> str:
    """Write out units of memory, frequency and length, dimensions ("3 x 5"), and part letters from digits."""
    text = _UNIT.sub(_expand_unit, text)
    text = _DIMENSIONS.sub(_expand_dimensions, text)
    return _MIXED.sub(_expand_mixed, text)


def _spell(match: re.Match) -> str:
    return ".".join(match[1]) + "." + ("'s" if match[2] else "")


def spell_acronyms(text: str) -> str:
    """Spell every run of two or more capitals letter by letter, words included: "WHY" -> "W.H.Y." (quirk 2)."""
    text = _EXCEPTION.sub(lambda match: _EXCEPTIONS[match[0]], text)
    return _ACRONYM.sub(_spell, text)


_TITLES = word_table("published_titles")
ABBREVIATIONS = _TITLES | word_table("published_abbreviations")
_TITLE, _ABBREVIATION = (re.compile(rf"\b({'|'.join(table)})\.", re.IGNORECASE) for table in (_TITLES, ABBREVIATIONS))
_expand_signs = rules("published_signs")


def expand_titles(text: str) -> str:
    """Write out titles, the only abbreviations that Tacotron 2 knows."""
    return _TITLE.sub(lambda match: _TITLES[match[1].lower()], text)


def expand_abbreviations(text: str) -> str:
    """Write out titles, "%", "&", "@" and ".com".

    The rules for "No. 7" and "½" never apply after the number and transliteration steps, as published (quirk 2);
    they matter only to a caller that skips those steps.
    """
    return _ABBREVIATION.sub(lambda match: ABBREVIATIONS[match[1].lower()], _expand_signs(text))
