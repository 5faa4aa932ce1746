"""How published cleaners write ASCII, and read am and pm, units, letters with digits, acronyms and abbreviations."""

import json
import re
import unicodedata
from pathlib import Path

from common.text.normalization.rules import rules
from common.text.tables import word_table

# FastPitch 1.1's own table, which derives from an MIT-licensed one: ASCII, and the characters that it is written for.
_WRITTEN = json.loads((Path(__file__).parent / "ascii.json").read_text(encoding="utf-8"))
_TABLE = {one: written for written, characters in _WRITTEN.items() for one in characters}

_UNITS = word_table("published_units")
_ENDINGS = ("'s", "s", "th", "nd", "st", "rd")


def to_ascii(text: str) -> str:
    """The text by the table; what the table lacks is left out: dashes, "…", "œ", "½", scripts of Asia, emoji."""
    return text if text.isascii() else "".join(one if one.isascii() else _TABLE.get(one, "") for one in text)


def left_out(text: str) -> list[str]:
    """The letters, numbers and signs of ``text`` that ``to_ascii`` leaves out; punctuation is not said."""
    lost = [one for one in text if not one.isascii() and one not in _TABLE]
    return [one for one in lost if unicodedata.category(one)[0] in "LNS"]


def _unit(match: re.Match) -> str:
    quantity, unit = match[1], _UNITS[match[2].lower()]
    several = not unit.endswith("z") and float(quantity.replace(",", "")) > 1
    return f"{quantity} {unit}{'s' if several else ''}"


def _pairs(digits: str) -> list[str]:
    """Up to four digits in the groups they are read in: 264 -> 2 64, 2490 -> 24 90, 101 -> 1 0 1, 500 -> 500."""
    if len(digits) > 4:
        return [digits]
    if len(digits) > 2 and digits[-2] == "0":
        return [digits] if digits[-1] == "0" else [digits[:-2], digits[-2], digits[-1]]
    first = len(digits) % 2
    return [*([digits[:first]] if first else []), *(digits[i : i + 2] for i in range(first, len(digits), 2))]


def _mixed(match: re.Match) -> str:
    """Part "H264" -> "H 2 64", "B2B" -> "B 2 B"; ordinals and decades ("1st", "1990s") stay as they are."""
    parts = [part for part in re.split(r"(\d+)", match[0]) if part]
    if parts[-1] in _ENDINGS and parts[-2].isdigit():
        parts[-2:] = [parts[-2] + parts[-1]]
    groups = [group for part in parts for group in (_pairs(part) if part.isdigit() else [part])]
    return " ".join(groups)


# "7:30 am" is "7 30 a.m."; a sentence's own full stop then follows a second one, as published (quirk 8).
expand_times = rules("published_times")
# Units of memory, frequency and length, dimensions ("3 x 5"), and letters apart from digits.
expand_letters_and_numbers = rules("published_units_and_letters", unit=_unit, mixed=_mixed)
# Every run of two or more capitals letter by letter, words included: "WHY" -> "W.H.Y." (quirk 2).
spell_acronyms = rules("published_acronyms", spelled=lambda match: ".".join(match[1]) + "." + "'s" * bool(match[2]))
expand_titles = rules("published_title_rules")  # the only abbreviations that Tacotron 2 knows
# The rules for "No. 7" and "½" never apply after the number and transliteration steps, as published (quirk 2); they
# matter only to a caller that skips those steps.
expand_abbreviations = rules("published_signs", "published_title_rules", "published_abbreviation_rules")
