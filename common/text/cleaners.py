"""Text cleaners by name: each turns a transcript into words and punctuation a voice was trained on."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from unidecode import unidecode

from common.errors import check_choice
from common.text.normalization.english.characters import is_lost, unread_characters
from common.text.normalization.english.english import read_english
from common.text.normalization.published.letters import (
    expand_abbreviations,
    expand_letters_and_numbers,
    expand_times,
    expand_titles,
    left_out,
    spell_acronyms,
    to_ascii,
)
from common.text.normalization.published.numbers import expand_currency, expand_numbers, expand_numbers_of_tacotron2

_SPACES = re.compile(r"\s+")
_SLASHES = re.compile(r"/+")

ToAscii = Callable[[str], str]


def collapse_spaces(text: str) -> str:
    """Every run of spaces, tabs and line ends becomes one space."""
    return _SPACES.sub(" ", text)


def basic_cleaners(text: str) -> str:
    """Lower case and single spaces, nothing else (published)."""
    return collapse_spaces(text.lower())


def transliteration_cleaners(text: str, *, ascii_by: ToAscii) -> str:
    """ASCII, lower case, single spaces (published)."""
    return collapse_spaces(ascii_by(text).lower())


def english_cleaners(text: str, *, ascii_by: ToAscii) -> str:
    """Numbers and abbreviations written out after lower-casing (published, exactly, faults included)."""
    return collapse_spaces(expand_abbreviations(expand_numbers(ascii_by(text).lower())))


def english_cleaners_v2(text: str, *, ascii_by: ToAscii) -> str:
    """Numbers, abbreviations, times, units, letters with digits, and acronyms written out (published, exactly)."""
    text = expand_letters_and_numbers(expand_times(ascii_by(text)))
    text = expand_abbreviations(expand_numbers(text))
    return _SLASHES.sub(" ", collapse_spaces(spell_acronyms(text).lower()))


def english_cleaners_tacotron2(text: str) -> str:
    """Numbers and titles written out as in the original Tacotron 2, which has FastPitch 1.1's table (published)."""
    return collapse_spaces(expand_titles(expand_numbers_of_tacotron2(to_ascii(text).lower())))


TACOTRON2 = "english_cleaners_tacotron2"  # reads the text between phones in curly braces at once, not word by word
_RELEASE_1_1 = "_1_1"  # after the name of a cleaner that writes ASCII by FastPitch 1.1's own table
PUBLISHED_CLEANERS: dict[str, Callable[[str], str]] = {
    f"{cleaner.__name__}{release}": partial(cleaner, ascii_by=ascii_by)
    for release, ascii_by in (("", unidecode), (_RELEASE_1_1, to_ascii))
    for cleaner in (english_cleaners, english_cleaners_v2, transliteration_cleaners)
} | {"basic_cleaners": basic_cleaners, TACOTRON2: english_cleaners_tacotron2}
ENGLISH_V3 = "english_cleaners_v3"  # for new voices
CLEANERS = {**PUBLISHED_CLEANERS, ENGLISH_V3: read_english}


def get_cleaner(name: str) -> Callable[[str], str]:
    """The cleaner of that name; an unknown name is an ``InputError`` that lists the valid ones."""
    check_choice("text cleaner", name, CLEANERS)
    return CLEANERS[name]


def cleaners_of_1_1(names: Iterable[str]) -> tuple[str, ...]:
    """What FastPitch 1.1 calls by the ``names`` of its cleaners."""
    return tuple(name + _RELEASE_1_1 if name + _RELEASE_1_1 in CLEANERS else name for name in names)


def unread_by(names: Sequence[str], text: str) -> list[str]:
    """The characters of ``text`` that these cleaners leave out or write in Latin letters that do not say them.

    Those of ``basic_cleaners`` stay, for the symbol set to know or not.
    """
    if text.isascii():
        return []
    if ENGLISH_V3 in names:
        return unread_characters(text)
    if not set(names) - {"basic_cleaners"}:
        return []
    lost: set[str] = set()
    if any(name == TACOTRON2 or name.endswith(_RELEASE_1_1) for name in names):
        text = text if TACOTRON2 in names else expand_currency(text)
        lost = set(left_out(text))
    return [one for one in text if one in lost or is_lost(one)]
