"""How the published cleaners read abbreviated titles, percent, ampersands, e-mail addresses and domains."""

import re

from common.text.normalization.tables import word_table

ABBREVIATIONS = word_table("published_abbreviations")
_ABBREVIATION = re.compile(rf"\b({'|'.join(ABBREVIATIONS)})\.", re.IGNORECASE)
_NUMBER_SIGN = re.compile(r"No\.(?=[ ]?[0-9])")
_PERCENT = re.compile(r"[ ]?%")
_HALF = re.compile(r"([0-9])?½")
_DOMAIN = re.compile(r"([a-zA-Z])\.(com|gov|org)")


def expand_abbreviations(text: str) -> str:
    """Write out titles, "%", "&", "@" and ".com".

    The rules for "No. 7" and "½" never apply after the number and transliteration steps, as published (quirk 2);
    they matter only to a caller that skips those steps.
    """
    text = _NUMBER_SIGN.sub("Number", text)
    text = _PERCENT.sub(" percent", text)
    text = _HALF.sub(lambda match: f"{match[1]} and a half" if match[1] else "half", text)
    text = text.replace("&", " and ").replace("@", " at ")
    text = _DOMAIN.sub(r"\1 dot \2", text)
    return _ABBREVIATION.sub(lambda match: ABBREVIATIONS[match[1].lower()], text)
