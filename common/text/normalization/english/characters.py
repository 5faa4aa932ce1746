"""Characters: any Unicode text as ASCII before it is read, and only a voice's characters afterwards."""

import re
import unicodedata
from functools import lru_cache

from unidecode import unidecode

from common.text.tables import word_rules, word_table

_PLAIN = {one: written for written, characters in word_table("same_characters").items() for one in characters}
_PLAIN |= {"•": ", ", "\u00ad": "", **dict.fromkeys("®™·⋅∙†‡¿¡", " ")}  # \u00ad: a soft hyphen; nobody says the others
_PLAIN |= {sign: f" {words} " for sign, words in word_table("plain_signs").items()}
KEPT_SIGNS = "£€¥₩₹¢°"  # that later rules read, and that Unidecode would turn into letters
_READ = frozenset((*_PLAIN, *KEPT_SIGNS, "$"))
_SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_SUPERSCRIPT = re.compile("⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_GREEK = word_table("greek_letters")
# Of a formula or a name, "Δt"; Greek words are of another language.
_GREEK_LETTER = re.compile(r"(?<![\u0370-\u03ff\u1f00-\u1fff])([α-ωΑ-Ωµ∆])(?![\u0370-\u03ff\u1f00-\u1fff])")
_MICRO = re.compile(r"(?<![A-Za-z])[µμ](?=[A-Za-zΩ])")
_OHM = re.compile(r"(?:(?<=[0-9])|(?<=[0-9]\s)|\b(?=[kMGmu]Ω))([kMGmu]?)Ω(?!\w)")
_SIDE = r"[0-9](?:\s?(?:mm|cm|m|km|in|ft|feet|inches))?"
_CROSS_OF_SIDES = re.compile(rf"({_SIDE})\s*×\s*(?=[0-9])")
_PRODUCT = re.compile(r"(?<=[0-9])\s?[·⋅∙]\s?(?=[0-9])")
_EN_DASH = re.compile(r"(?<=\d)\s?–\s?(?=\d)")
_UNUSUAL = re.compile(rf"[^\x00-\x7f{KEPT_SIGNS}]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def _greek_letter(match: re.Match) -> str:
    text, name = match.string, _GREEK[match[1].lower()]
    before, after = text[: match.start()][-1:], text[match.end() :][:1]
    return " " * before.isalnum() + name + " " * after.isalnum()


def _formula_signs(text: str) -> str:
    """Signs and Greek letters whose reading depends on what is beside them: "5 kΩ", "2 × 3 m", "a × b", "Δt"."""
    text = _OHM.sub(r"\1ohm", _MICRO.sub("u", text))
    text = _PRODUCT.sub(" * ", _CROSS_OF_SIDES.sub(r"\1 x ", text)).replace("×", " times ")
    return _GREEK_LETTER.sub(_greek_letter, text)


def unread_characters(text: str) -> list[str]:
    """The characters that have no English reading, in order: letters of other scripts, emoji, rare signs."""
    text = _GREEK_LETTER.sub("", unicodedata.normalize("NFC", text))
    return [one for one in text if one not in _READ and (is_lost(one) or unicodedata.category(one) == "Sc")]


def is_lost(character: str) -> bool:
    """Whether ASCII has nothing for a character that is seen or heard: Unidecode leaves it out, or writes letters of
    another script in Latin ones, which is not how they are said ("mrhb" for the Arabic "hello").
    """
    kind = unicodedata.category(character)
    if script_of(character):
        return True
    return kind not in ("Cc", "Cf", "Cs", "Mn", "Zs", "Zl", "Zp") and not unidecode(character)


@lru_cache(maxsize=4096)
def script_of(character: str) -> str:
    """The script of a letter that is none of the Latin alphabet's, "Arabic", else ""; "IPA" for phonetic letters."""
    if character.isascii() or unicodedata.category(character)[0] not in "LM":
        return ""
    name = unicodedata.name(unicodedata.normalize("NFKC", character)[0], "UNKNOWN")
    if "\u0250" <= character <= "\u02af":
        return "IPA"
    if character == "µ" or re.search(r"\b(?:LATIN|COMBINING|MODIFIER|VARIATION)\b", name):
        return ""
    return name.split()[0].replace("CJK", "Chinese").capitalize()


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
    text = _formula_signs(_EN_DASH.sub("-", text).replace("–", " - "))
    text = _SUPERSCRIPT.sub(lambda match: "^" + match[0].translate(_SUPERSCRIPTS), text)
    return _UNUSUAL.sub(_plain_character, text)


_ILLEGAL = re.compile(r"[^a-z\-!'(),.:;? ]+")
_EMPTY_BRACKETS = re.compile(r"\(\s*\)")
_SPACE_BEFORE_MARK = re.compile(r" +(?=[,.;:?!)])")
_SPACE_AFTER_BRACKET = re.compile(r"(?<=\() +")
_DASHES = re.compile(r"(?:(?<=\s)|^)-{2,}(?=\s|$)|-{2,}")
_JOINED_MARK = re.compile(r"(?<=[a-z])([,;:?!])(?=[a-z])")
_REPEATED_MARK = re.compile(r"([,;:])(?:\s*[,;:])+")
_REPEATED_STOP = re.compile(r"(?<!\.)\.\.(?!\.)")  # of an abbreviation and of the sentence that it ends: "x.e.."
_MANY_STOPS = re.compile(r"\.{4,}")


def tidy(text: str) -> str:
    """Lower case, only letters, spaces and ``-!'(),.:;?``, no space before a mark, single spaces, none at the ends."""
    text = _DASHES.sub(" - ", _ILLEGAL.sub(" ", text.lower()))
    text = " ".join(_EMPTY_BRACKETS.sub(" ", text).split())
    text = _REPEATED_MARK.sub(r"\1", _SPACE_BEFORE_MARK.sub("", text))
    text = _MANY_STOPS.sub("...", _REPEATED_STOP.sub(".", text))
    return _JOINED_MARK.sub(r"\1 ", _SPACE_AFTER_BRACKET.sub("", text)).strip()


_SIGN_RULES = word_rules("sign_rules")
_SIGN = re.compile(r"[#&<>=+*%@°$£€¥₩₹¢]")


def read_signs(text: str) -> str:
    """Write out the signs that are spoken; those that are not become spaces when the text is tidied."""
    if _SIGN.search(text):
        for pattern, words in _SIGN_RULES:
            text = pattern.sub(f" {words} ", text)
    return text
