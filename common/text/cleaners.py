"""Text cleaners by name: each turns a transcript into words and punctuation a voice was trained on."""

import re
from collections.abc import Callable, Sequence

from unidecode import unidecode

from common.errors import check_choice
from common.text.normalization.english.characters import is_lost, unread_characters
from common.text.normalization.english.english import read_english
from common.text.normalization.published.letters import (
    expand_abbreviations,
    expand_letters_and_numbers,
    expand_times,
    spell_acronyms,
)
from common.text.normalization.published.numbers import expand_numbers

_SPACES = re.compile(r"\s+")
_SLASHES = re.compile(r"/+")


def collapse_spaces(text: str) -> str:
    """Every run of spaces, tabs and line ends becomes one space."""
    return _SPACES.sub(" ", text)


def basic_cleaners(text: str) -> str:
    """Lower case and single spaces, nothing else (published)."""
    return collapse_spaces(text.lower())


def transliteration_cleaners(text: str) -> str:
    """ASCII by Unidecode, lower case, single spaces (published)."""
    return collapse_spaces(unidecode(text).lower())


def english_cleaners(text: str) -> str:
    """Numbers and abbreviations written out after lower-casing (published, exactly, faults included)."""
    return collapse_spaces(expand_abbreviations(expand_numbers(unidecode(text).lower())))


def english_cleaners_v2(text: str) -> str:
    """As ``english_cleaners``, also times, units, letters with digits, and acronyms (published, exactly)."""
    text = expand_letters_and_numbers(expand_times(unidecode(text)))
    text = expand_abbreviations(expand_numbers(text))
    return _SLASHES.sub(" ", collapse_spaces(spell_acronyms(text).lower()))


PUBLISHED_CLEANERS: dict[str, Callable[[str], str]] = {
    "english_cleaners": english_cleaners,
    "english_cleaners_v2": english_cleaners_v2,
    "basic_cleaners": basic_cleaners,
    "transliteration_cleaners": transliteration_cleaners,
}
ENGLISH_V3 = "english_cleaners_v3"  # for new voices
CLEANERS = {**PUBLISHED_CLEANERS, ENGLISH_V3: read_english}


def get_cleaner(name: str) -> Callable[[str], str]:
    """The cleaner of that name; an unknown name is an ``InputError`` that lists the valid ones."""
    check_choice("text cleaner", name, CLEANERS)
    return CLEANERS[name]


def unread_by(names: Sequence[str], text: str) -> list[str]:
    """The characters of ``text`` that these cleaners leave out or write in Latin letters that do not say them.

    Those of ``basic_cleaners`` stay, for the symbol set to know or not.
    """
    if text.isascii():
        return []
    if ENGLISH_V3 in names:
        return unread_characters(text)
    return [one for one in text if is_lost(one)] if set(names) - {"basic_cleaners"} else []
