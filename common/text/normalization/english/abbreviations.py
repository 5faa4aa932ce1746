"""Read abbreviations (titles, streets, companies, Latin, labels such as "No. 7") and Roman numerals ("George VI")."""

import re

from common.text.normalization.numbers import cardinal, ordinal, roman, year
from common.text.normalization.rules import rules
from common.text.tables import compiled

_SENTENCE_ENDS = compiled("<SENTENCE_ENDS>")


def _saint_or_street(match: re.Match) -> str:
    """ "St. James" is a saint; "Main St." and "5th St. The ..." are streets."""
    before, after = match.string[: match.start()].rstrip(), match.string[match.end() :]
    previous = before.split()[-1] if before.split() else ""
    named_before = bool(re.match(r"[A-Z0-9]", previous)) and previous[-1].isalnum()
    named_before = named_before or previous.endswith(("first", "second", "third", "th", "street"))
    ends = _SENTENCE_ENDS.match(after) is not None
    name_follows = re.match(r"\s?[A-Z]", after) is not None
    if name_follows and not (named_before and ends):
        return "saint"
    if not match[0].endswith(".") and not (named_before and match[0] == "St"):
        return match[0]
    is_street = named_before or match[0][0] == "S" or bool(previous)
    return ("street" if is_street else "saint") + ("." if ends and match[0].endswith(".") else "")


expand_labels = rules("places", "label_rules")
expand_abbreviations = rules(
    *("latin", "drives", "title_rules", "dotted_abbreviations", "streets_and_companies"),
    saint_or_street=_saint_or_street,
)

_PRONOUN_VERB = compiled(r"\s(?:<verbs_after_i>)\b|'(?!s\b)")
_SPOKEN_TO = compiled(r"(?i)\b(?:<before_i>)\s$")
_LETTERS = frozenset({"IV", "XX", "XXX"})  # alone, more often letters than numbers


def _ruler(match: re.Match) -> str:
    numeral, text = match[2], match.string
    if numeral == "I" and (_PRONOUN_VERB.match(text, match.end()) or _SPOKEN_TO.search(text[: match.start()][-12:])):
        return match[0]  # the pronoun: "I told George I was ill"
    if numeral == "X" and match[1] == "Malcolm":
        return match[0]
    return f"{match[1]} the {ordinal(roman(numeral))}"


def _numeral(match: re.Match) -> str:
    numeral = match[1]
    if numeral in _LETTERS or len(numeral) < (4 if numeral[0] == "M" else 2):
        return match[0]
    number = roman(numeral)
    return year(number) if 1000 < number < 2100 else cardinal(number)


_ROMAN_RANGE = re.compile(r"\b[xviXVI]+\s?-\s?[xviXVI]|ages\s[xviXVI]")
_read_roman_ranges, _read_lower_roman = rules("roman_ranges"), rules("lower_roman")
_read_capital_roman = rules("roman", ruler=_ruler, numeral=_numeral)


def read_roman(text: str) -> str:
    """Write out Roman numerals: "George VI" -> "George the sixth", "Chapter IV" -> "Chapter four"; "MIX" stays."""
    text = _read_lower_roman(_read_roman_ranges(text) if _ROMAN_RANGE.search(text) else text)
    return _read_capital_roman(text) if re.search(r"\b[MDCLXVI]+\b|WW", text) else text
