"""Words with one spelling and two pronunciations ("lead pipe", "lead the way"), told apart by the words around them."""

import re
from typing import NamedTuple

from common.text.espeak import GIVEN
from common.text.normalization.rules import rules
from common.text.tables import word_table

_PHONES = {key: phones.replace(";", ",").split("/") for key, phones in word_table("heteronym_phones").items()}
_ANY = re.compile(rf"\b(?:{'|'.join(sorted({key.partition('=')[0] for key in _PHONES}))})\b")
_MARKED = re.compile(r"\b([a-z]+)=([a-z]+)")
_ENDING = re.compile("'[a-z]")  # "the record's"
_LOST_STOP = re.compile(r"\.(?=\s[a-z])")  # doesn't end a clause for eSpeak NG, which would say "dot" after phones
_write_for_espeak = rules("written_for_espeak", letter_a=lambda _: f"{GIVEN[0]}'eI{GIVEN[1]}")
_mark = rules("heteronyms")  # "read=past" in place of "read"


class Reading(NamedTuple):
    """A word in a text whose context determines its pronunciation."""

    start: int  # characters before it in the text
    end: int
    arpabet: str  # phones, with spaces between them
    espeak: str  # phones in eSpeak NG's own notation, which isn't IPA


def read_heteronyms(text: str) -> list[Reading]:
    """Return the words that can be told apart, in order, in an English text written out by ``english_cleaners_v3``."""
    if "=" in text or not _ANY.search(text):
        return []
    readings: list[Reading] = []
    n_added = 0  # characters that earlier classes added
    for match in _MARKED.finditer(_mark(text)):
        start = match.start() - n_added
        n_added += len(match[0]) - len(match[1])
        if (phones := _PHONES.get(match[0])) and not _ENDING.match(match.string, match.end()):
            readings.append(Reading(start, start + len(match[1]), *phones))
    return readings


def with_espeak_phones(text: str) -> str:
    """Return the text for `transcribe`, with phones for known heteronyms and commas (pauses) for parentheses."""
    begin, end = GIVEN
    text = _write_for_espeak(text)
    parts, done = [], 0
    for reading in read_heteronyms(text):
        parts += [text[done : reading.start], begin, reading.espeak, end]
        stop = _LOST_STOP.match(text, reading.end)
        done = reading.end if stop is None else stop.end()
    return "".join([*parts, text[done:]])
