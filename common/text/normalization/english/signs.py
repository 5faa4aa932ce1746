"""Signs between words: &, @, +, =, <, >, %, / and the rest of the keyboard."""

import re
from collections.abc import Callable

from common.text.normalization.tables import word_table

_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9]*(?:\s[^<>]*)?/?>")
_CURRENCIES = word_table("currency_signs")
_WORDS: tuple[tuple[re.Pattern, str | Callable[[re.Match], str]], ...] = (
    (re.compile(r"(?<=\b[A-G])#"), " sharp "),
    (re.compile(r"\s*&\s*"), " and "),
    (re.compile(r"\s*<=\s*"), " is less than or equal to "),
    (re.compile(r"\s*>=\s*"), " is greater than or equal to "),
    (re.compile(r"\s*(?:!=|=/=)\s*"), " is not equal to "),
    (re.compile(r"\s*<->?\s*|\s*<?->\s*|\s*=>\s*"), " to "),
    (re.compile(r"\s*=+\s*"), " equals "),
    (re.compile(r"(?<=\w)\s*<\s*(?=\w)|\s<\s"), " is less than "),
    (re.compile(r"(?<=\w)\s*>\s*(?=\w)|\s>\s"), " is greater than "),
    (re.compile(r"(?<=\w)\s*\+\s*(?=\w)|\s\+\s"), " plus "),
    (re.compile(r"(?<=\w)\s\*\s(?=\w)"), " times "),
    (re.compile(r"\s*%"), " percent "),
    (re.compile(r"\s*@\s*"), " at "),
    (re.compile(r"°"), " degrees "),
    (re.compile(r"\$+|[£€¥₩₹¢]"), lambda match: f" {_CURRENCIES[match[0][0]]} "),
    (re.compile(r"(?<=\w)\+\+"), " plus plus "),
    (re.compile(r"(?<=\w)\+"), " plus "),
)
_SIGN = re.compile(r"[#&<>=+*%@°$£€¥₩₹¢]")


def drop_tags(text: str) -> str:
    """Text without markup such as ``<br>``."""
    return _TAG.sub(" ", text) if "<" in text else text


def read_signs(text: str) -> str:
    """Write out the signs that are spoken; those that are not become spaces when the text is tidied."""
    if _SIGN.search(text):
        for pattern, words in _WORDS:
            text = pattern.sub(words, text)
    return text
