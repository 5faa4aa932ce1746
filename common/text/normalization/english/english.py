"""``english_cleaners_v3``: English text as it is read aloud, in the characters of ``english_basic``."""

import re
import unicodedata

from common.text.normalization.english.abbreviations import expand_abbreviations, expand_labels, read_roman
from common.text.normalization.english.characters import plain_characters, read_signs, tidy
from common.text.normalization.english.counts import read_forms, read_numbers
from common.text.normalization.english.pronunciation import read_addresses, read_letters
from common.text.normalization.english.quantities import read_bare_units
from common.text.symbols import ARPABET
from common.text.tables import compiled

_PHONE = "|".join(sorted(ARPABET, key=len, reverse=True))
_ARPABET_GROUP = re.compile(rf"(\{{\s*(?:{_PHONE})(?:\s+(?:{_PHONE}))*\s*\}})")
_MOST_PASSES = 5  # the second pass changes fewer than one odd text in a thousand, such as "9.ch" -> "nine.ch"
_KEPT_ACCENTS = compiled("<KEPT_ACCENTS>")
_DIGIT = re.compile(r"[0-9]")


def _read(text: str) -> str:
    text = expand_labels(read_addresses(read_forms(plain_characters(text))))
    text = read_numbers(text) if _DIGIT.search(text) else text
    text = expand_abbreviations(read_roman(text.replace('"', " ")))
    return tidy(read_signs(read_bare_units(read_letters(text))))


def read_english(text: str) -> str:
    """Return the text as lowercase words, with ``-!'(),.:;?`` as the only marks; ARPAbet in curly braces is unchanged.

    All of the text is read at once, since a word's reading depends on its neighbors: "St. James St.", "1905 people".
    """
    for _ in range(_MOST_PASSES):
        before, text = text, _read_parts(text)
        if text == before:
            break
    return text


def with_accents(words: str, text: str) -> str:
    """Restore, in the ``words`` from `read_english`, the accents that eSpeak NG needs: "beyonce" -> "beyoncé"."""
    for accented in dict.fromkeys(_KEPT_ACCENTS.findall(unicodedata.normalize("NFC", text).lower())):
        words = re.sub(rf"\b{plain_characters(accented)}\b", accented, words)
    return words


def _read_parts(text: str) -> str:
    parts = _ARPABET_GROUP.split(text)  # odd parts are ARPAbet
    spoken = [part if index % 2 else _read(part) for index, part in enumerate(parts)]
    joined = " ".join(part for part in spoken if part)
    return re.sub(r"(?<=\}) (?=[.,;:!?)])", "", joined)
