"""Convert any Unicode text to ASCII before it is read, and keep only a voice's characters afterwards."""

import re
import unicodedata
from functools import lru_cache

from unidecode import unidecode

from common.text.normalization.rules import rules
from common.text.tables import compiled, word_table

_PLAIN = {one: written for written, characters in word_table("same_characters").items() for one in characters}
_PLAIN |= {"•": ", ", "\u00ad": "", **dict.fromkeys("®™·⋅∙†‡¿¡▶►▸", " ")}  # \u00ad: a soft hyphen; others are silent
_PLAIN |= {sign: f" {words} " for sign, words in word_table("plain_signs").items()}
KEPT_SIGNS = "£€¥₩₹₽₺₪₫฿₱₦₴₸₡₵₿¢°"  # read by later rules; Unidecode would turn them into letters
_READ = frozenset((*_PLAIN, *KEPT_SIGNS, "$"))
_GREEK_LETTER = compiled("<GREEK>")
_UNUSUAL = re.compile(rf"[^\x00-\x7f{KEPT_SIGNS}]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_read_formula_signs = rules("formula_signs")
_tidy = rules("tidy")
read_signs = rules("signs")  # signs that are spoken; others become spaces in `tidy`


def unread_characters(text: str) -> list[str]:
    """Return the characters that have no English reading, in order: letters of other scripts, emoji, rare signs."""
    text = _GREEK_LETTER.sub("", unicodedata.normalize("NFC", text))
    return [one for one in text if one not in _READ and (is_lost(one) or unicodedata.category(one) == "Sc")]


def is_lost(character: str) -> bool:
    """Whether ASCII has nothing for a visible or spoken character, or only letters with other sounds (Arabic)."""
    kind = unicodedata.category(character)
    if script_of(character):
        return True
    return kind not in ("Cc", "Cf", "Cs", "Mn", "Zs", "Zl", "Zp") and not unidecode(character)


@lru_cache(maxsize=4096)
def script_of(character: str) -> str:
    """Return the script of a letter that isn't Latin, such as "Arabic", else ""; "IPA" for phonetic letters."""
    if character.isascii() or unicodedata.category(character)[0] not in "LM":
        return ""
    name = unicodedata.name(unicodedata.normalize("NFKC", character)[0], "UNKNOWN")
    if "\u0250" <= character <= "\u02af":
        return "IPA"
    if character == "µ" or re.search(r"\b(?:LATIN|COMBINING|MODIFIER|VARIATION)\b", name):
        return ""
    return name.split()[0].replace("CJK", "Chinese").capitalize()


def is_phonetic(letter: str) -> bool:
    """Whether a letter is only in the phonetic alphabet; "ə" is also in Azerbaijani."""
    return letter != "ə" and script_of(letter) == "IPA"


def _plain_character(match: re.Match) -> str:
    character = match[0]
    if character in _PLAIN:
        return _PLAIN[character]
    if unicodedata.category(character) == "No" and "⁄" in unicodedata.normalize("NFKC", character):
        return " " + unicodedata.normalize("NFKC", character).replace("⁄", "/")  # ½ -> 1/2
    return unidecode(character)


def plain_characters(text: str) -> str:
    """Convert text to ASCII letters, digits and punctuation, and ``KEPT_SIGNS``: "café" -> "cafe", "2½" -> "2 1/2"."""
    text = text.replace("[", "(").replace("]", ")").replace("`", "'")
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", _SURROGATE.sub("", text))
    return _UNUSUAL.sub(_plain_character, _read_formula_signs(text))


def tidy(text: str) -> str:
    """Lowercase text; keep only letters, ``-!'(),.:;?`` and single spaces, no space before a mark or at the ends."""
    return _tidy(text.lower()).strip()
