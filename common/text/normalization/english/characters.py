"""Characters: any Unicode text as ASCII before it is read, and only a voice's characters afterwards."""

import re
import unicodedata

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
