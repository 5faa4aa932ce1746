"""Which words of capitals are spelled letter by letter, and which can be spoken as words."""

import re
from functools import lru_cache

from common.text.normalization.tables import word_set

_INITIALISMS = word_set("initialisms")
_SPOKEN = word_set("spoken_capitals")
# Initialisms that are common words too: words when their neighbors are in capitals as well ("GIVE IT TO US").
AMBIGUOUS = frozenset({"IT", "US", "WHO", "ERA", "LED", "MOD", "RIP", "COB", "SEC"})

_ONSETS = word_set("onsets") | {""}
_CODAS = word_set("codas") | {""}
_RUNS = re.compile(r"[aeiouy]+|[^aeiouy]+")


def _can_follow(cluster: str) -> bool:
    """Whether consonants between two vowels can be cut into the end of one syllable and the start of another."""
    return any(cluster[:cut] in _CODAS and cluster[cut:] in _ONSETS for cut in range(len(cluster) + 1))


@lru_cache(maxsize=16384)
def is_pronounceable(word: str) -> bool:
    """Whether English can speak the letters as a word: syllables with a vowel, possible starts, ends and joints."""
    runs = _RUNS.findall(word.lower())
    vowels = [run for run in runs if run[0] in "aeiouy"]
    if not vowels or any(len(run) > 3 for run in vowels):
        return False
    for place, run in enumerate(runs):
        if run[0] in "aeiouy":
            continue
        if place == 0:
            fits = run in _ONSETS
        elif place == len(runs) - 1:
            fits = run in _CODAS
        else:
            fits = _can_follow(run)
        if not fits:
            return False
    return True


@lru_cache(maxsize=16384)
def is_spelled(capitals: str) -> bool:
    """Whether a word of capitals is said letter by letter: FBI and TV are; NASA, WHY and IMPORTANT are not."""
    if capitals in _INITIALISMS:
        return True
    if capitals in _SPOKEN:
        return False
    return len(capitals) == 2 or not is_pronounceable(capitals)


def is_spelled_in_lower_case(word: str) -> bool:
    """The same for a part of an address, where names are in lower case too: "html" and "ibm" are, "john" is not."""
    return not any(vowel in word.lower() for vowel in "aeiouy") or (len(word) > 2 and word.upper() in _INITIALISMS)
