"""Abbreviations: titles, streets, companies, Latin, and labels before a number such as "No. 7" and "pp. 5-7"."""

import re

from common.text.tables import word_pattern, word_rules, word_table

STARTERS = word_pattern("sentence_starters")
_ENDS_SENTENCE = rf"(?=\s*[\"')]*\s*$|\s+[\"'(]*(?:{STARTERS})\b)"

_TITLES = word_table("titles")
_DOTTED_TITLES = word_table("dotted_titles")
_WORDS = word_table("abbreviations")
_MONTHS = word_table("months")
_WEEKDAYS = word_table("weekdays")
_WEEKEND = {"Sat": "Saturday", "Sun": "Sunday"}  # "sat." and "sun." are words too: only before a date or a time
_LATIN_RULES = word_rules("latin_rules")
_BEFORE_NUMBER = word_table("labels")
_LABEL = re.compile(rf"(?<![\w.])({'|'.join(_BEFORE_NUMBER)})\.\s?(?=[0-9]|#[0-9]|[IVXLC]+\b(?!['.]\w))", re.IGNORECASE)
_BARE_LABEL = re.compile(r"(?<![\w.])(pp|p|vol|ext)\s(?=[0-9])|(?<![\w.])(Vol|Ch|Fig)\s(?=[0-9])|\b(Nos?)\s(?=[0-9])")
_NUMBER_SIGN = re.compile(r"(?<![\w&])#\s?(?=[0-9])")
_MONTH = re.compile(
    rf"\b({'|'.join(_MONTHS)})\b(?:\.|(?=\s[0-9])|(?<=[0-9]\s...)|(?<=[0-9](?:st|nd|rd|th)\s...))", re.IGNORECASE
)
_WEEKDAY = re.compile(rf"\b({'|'.join(_WEEKDAYS)})\.", re.IGNORECASE)
_WEEKEND_DAY = re.compile(
    rf"\b({'|'.join(_WEEKEND)})\.(?=,?\s(?:[0-9]|at\b|{'|'.join(set(_MONTHS.values()) | {'May'})}))"
)

_DAY = "Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun"
_WEEKDAY_RANGE = re.compile(rf"\b({_DAY})\.?\s?(?:-|to)\s?({_DAY})\b\.?")
_NAME_AHEAD = r"(?=\s?[A-Z])"
_TITLE = re.compile(rf"\b({'|'.join(_TITLES)})\b(?:\.|(?=\s(?:[A-Z]|&|and\s)))")
_DOTTED_TITLE = re.compile(rf"\b({'|'.join(_DOTTED_TITLES)})\.{_NAME_AHEAD}")
_LOWER_TITLE = re.compile(r"\b(mr|mrs|ms|dr|drs|prof)\.", re.IGNORECASE)
_DRIVE = re.compile(rf"(?<=[a-z]\s)(?<!\bthe\s)Dr\.?(?=\s*[,;:)]|\s+[a-z]|{_ENDS_SENTENCE[3:-1]})")
_DRIVE_NAME = re.compile(r"\b[A-Z0-9][\w']*\s$")
_STREET = re.compile(r"\bSt\b\.?", re.IGNORECASE)
_STARTER = re.compile(rf"\s+[\"'(]*(?:{STARTERS})\b|\s*[\"')]*\s*$")
_WORD = re.compile(rf"\b({'|'.join(_WORDS)})\.(?!\w)((?-i:{_ENDS_SENTENCE}))?", re.IGNORECASE)
_BARE_SUFFIX = re.compile(r"(?<=[a-z],\s|\w[a-z]\s)(Jr|Sr|Inc|Ltd|Corp|Esq)\b(?!\.)")


def _day_name(short: str) -> str:
    return _WEEKEND.get(short) or _WEEKDAYS[short.lower()]


def expand_labels(text: str) -> str:
    """Abbreviations that stand before numbers and in dates, so that the rules for these see complete words."""
    text = _NUMBER_SIGN.sub("number ", text)
    text = _LABEL.sub(lambda match: _BEFORE_NUMBER[match[1].lower()] + " ", text)
    text = _BARE_LABEL.sub(lambda match: _BEFORE_NUMBER[match[0].strip().lower()] + " ", text)
    text = _MONTH.sub(lambda match: _MONTHS[match[1].lower()], text)
    text = _WEEKDAY_RANGE.sub(lambda match: f"{_day_name(match[1])} to {_day_name(match[2])}", text)
    text = _WEEKDAY.sub(lambda match: _WEEKDAYS[match[1].lower()], text)
    return _WEEKEND_DAY.sub(lambda match: _WEEKEND[match[1]], text)


def _saint_or_street(match: re.Match) -> str:
    """ "St. James" is a saint; "Main St." and "5th St. The ..." are streets."""
    before, after = match.string[: match.start()].rstrip(), match.string[match.end() :]
    previous = before.split()[-1] if before.split() else ""
    named_before = bool(re.match(r"[A-Z0-9]", previous)) and previous[-1].isalnum()
    named_before = named_before or previous.endswith(("first", "second", "third", "th", "street"))
    ends = _STARTER.match(after) is not None
    name_follows = re.match(r"\s?[A-Z]", after) is not None
    if name_follows and not (named_before and ends):
        return "saint"
    if not match[0].endswith(".") and not (named_before and match[0] == "St"):
        return match[0]
    is_street = named_before or match[0][0] == "S" or bool(previous)
    return ("street" if is_street else "saint") + ("." if ends and match[0].endswith(".") else "")


def _drive(match: re.Match) -> str:
    named = _DRIVE_NAME.search(match.string[: match.start()])
    if not named:
        return match[0]
    ends = match[0].endswith(".") and _STARTER.match(match.string[match.end() :])
    return "drive." if ends else "drive"


def expand_abbreviations(text: str) -> str:
    """Write out abbreviations; a full stop that also ends the sentence stays."""
    if "/" in text or "." in text or "vs" in text.lower():
        for pattern, words in _LATIN_RULES:
            text = pattern.sub(words, text)
    text = _DRIVE.sub(_drive, text)
    text = _TITLE.sub(lambda match: _TITLES[match[1]], text)
    if "." in text:
        text = _DOTTED_TITLE.sub(lambda match: _DOTTED_TITLES[match[1]], text)
        text = _LOWER_TITLE.sub(lambda match: _TITLES[match[1].capitalize()], text)
        text = _WORD.sub(lambda match: _WORDS[match[1].lower()] + ("" if match[2] is None else "."), text)
    text = _STREET.sub(_saint_or_street, text)
    return _BARE_SUFFIX.sub(lambda match: _WORDS[match[1].lower()], text)
