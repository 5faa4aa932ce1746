"""Text cleaners by name: each turns a transcript into the words and punctuation that a voice was trained on."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from unidecode import unidecode

from common.errors import check_choice
from common.text.normalization.english.characters import is_lost, unread_characters
from common.text.normalization.english.english import read_english
from common.text.normalization.published.reading import (
    expand_abbreviations,
    expand_currency,
    expand_letters_and_numbers,
    expand_numbers,
    expand_numbers_of_tacotron2,
    expand_times,
    expand_titles,
    left_out,
    spell_acronyms,
    to_ascii,
)

TACOTRON2 = "english_cleaners_tacotron2"  # cleans all text between phones in curly braces at once, not word by word
ENGLISH_V3 = "english_cleaners_v3"  # for new voices
_RELEASE_1_1 = "_1_1"  # suffix of cleaners that write ASCII with FastPitch 1.1's own table
_SPACES = re.compile(r"\s+")

Step = Callable[[str], str]


def collapse_spaces(text: str) -> str:
    """Replace every run of spaces, tabs and line breaks with one space."""
    return _SPACES.sub(" ", text)


def _writing_ascii(ascii_by: Step) -> dict[str, tuple[Step, ...]]:
    """Return the steps of the published cleaners that write ASCII, with Unidecode or a table."""
    return {
        "english_cleaners": (ascii_by, str.lower, expand_numbers, expand_abbreviations, collapse_spaces),
        "english_cleaners_v2": (
            *(ascii_by, expand_times, expand_letters_and_numbers, expand_numbers, expand_abbreviations),
            *(spell_acronyms, str.lower, collapse_spaces, partial(re.compile("/+").sub, " ")),
        ),
        "transliteration_cleaners": (ascii_by, str.lower, collapse_spaces),
    }


def _clean(steps: Iterable[Step], text: str) -> str:
    for step in steps:
        text = step(text)
    return text


_STEPS: dict[str, tuple[Step, ...]] = {
    **_writing_ascii(unidecode),
    "basic_cleaners": (str.lower, collapse_spaces),
    **{name + _RELEASE_1_1: steps for name, steps in _writing_ascii(to_ascii).items()},
    TACOTRON2: (to_ascii, str.lower, expand_numbers_of_tacotron2, expand_titles, collapse_spaces),
}
PUBLISHED_CLEANERS = {name: partial(_clean, steps) for name, steps in _STEPS.items()}  # faults included
CLEANERS: dict[str, Step] = {**PUBLISHED_CLEANERS, ENGLISH_V3: read_english}


def get_cleaner(name: str) -> Callable[[str], str]:
    """Return the cleaner of that name; raises InputError that lists the valid names."""
    check_choice("text cleaner", name, CLEANERS)
    return CLEANERS[name]


def cleaners_of_1_1(names: Iterable[str]) -> tuple[str, ...]:
    """Return our names of the cleaners that FastPitch 1.1 calls ``names``."""
    return tuple(name + _RELEASE_1_1 if name + _RELEASE_1_1 in CLEANERS else name for name in names)


def unread_by(names: Sequence[str], text: str) -> list[str]:
    """Return the characters of ``text`` that these cleaners drop or turn into Latin letters with other sounds."""
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
