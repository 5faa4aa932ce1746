"""Characters: any Unicode text as ASCII before it is read, and only a voice's characters afterwards."""

import re
import unicodedata
from collections.abc import Callable

from unidecode import unidecode

from common.text.normalization.tables import word_table

_PLAIN = {
    **dict.fromkeys("‘’‚‛′ʼ`´", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒−﹣－", "-"),
    **dict.fromkeys("®™·", " "),
    "…": "...",
    "⁄": "/",
    "∕": "/",
    "[": "(",
    "]": ")",
    "µ": "u",
    "μ": "u",
    "•": ", ",
    "\u00ad": "",  # soft hyphen
}
_PLAIN |= {sign: f" {words} " for sign, words in word_table("plain_signs").items()}
# Signs that later rules read, and that Unidecode would turn into letters.
KEPT_SIGNS = "£€¥₩₹¢°"
_PLAIN |= {"℃": "°C", "℉": "°F", "º": "°", "￥": "¥", "￡": "£", "￦": "₩"}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_EN_DASH = re.compile(r"(?<=\d)\s?–\s?(?=\d)")
_UNUSUAL = re.compile(rf"[^\x00-\x7f{KEPT_SIGNS}]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def _plain_character(match: re.Match) -> str:
    character = match[0]
    if character in _PLAIN:
        return _PLAIN[character]
    if unicodedata.category(character) == "No" and "⁄" in unicodedata.normalize("NFKC", character):
        return " " + unicodedata.normalize("NFKC", character).replace("⁄", "/")  # ½ -> 1/2
    return unidecode(character)


def plain_characters(text: str) -> str:
    """ASCII letters, digits and punctuation, and the signs of ``KEPT_SIGNS``: "café" -> "cafe", "2½" -> "2 1/2"."""
    text = text.replace("[", "(").replace("]", ")").replace("`", "'")
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", _SURROGATE.sub("", text))
    text = _EN_DASH.sub("-", text).replace("–", " - ")
    text = _SUPERSCRIPT.sub(lambda match: "^" + match[0].translate(_SUPERSCRIPTS), text)
    return _UNUSUAL.sub(_plain_character, text)


_ILLEGAL = re.compile(r"[^a-z\-!'(),.:;? ]+")
_EMPTY_BRACKETS = re.compile(r"\(\s*\)")
_SPACE_BEFORE_MARK = re.compile(r" +(?=[,.;:?!)])")
_SPACE_AFTER_BRACKET = re.compile(r"(?<=\() +")
_DASHES = re.compile(r"(?:(?<=\s)|^)-{2,}(?=\s|$)|-{2,}")
_JOINED_MARK = re.compile(r"(?<=[a-z])([,;:?!])(?=[a-z])")
_REPEATED_MARK = re.compile(r"([,;:])(?:\s*[,;:])+")


def tidy(text: str) -> str:
    """Lower case, only letters, spaces and ``-!'(),.:;?``, no space before a mark, single spaces, none at the ends."""
    text = _DASHES.sub(" - ", _ILLEGAL.sub(" ", text.lower()))
    text = " ".join(_EMPTY_BRACKETS.sub(" ", text).split())
    text = _REPEATED_MARK.sub(r"\1", _SPACE_BEFORE_MARK.sub("", text))
    return _JOINED_MARK.sub(r"\1 ", _SPACE_AFTER_BRACKET.sub("", text)).strip()


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
