"""Which words of capitals are spelled letter by letter, and which can be spoken as words."""

import re
from functools import lru_cache

from common.text.normalization.english.abbreviations import STARTERS
from common.text.tables import word_set

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
    """Whether a part of an address is said letter by letter, in lower case too: "html" and "ibm" are, "john" is not."""
    return not any(vowel in word.lower() for vowel in "aeiouy") or (len(word) > 2 and word.upper() in _INITIALISMS)


_CAPITALS = re.compile(r"(?<![A-Za-z0-9'.])([A-Z]{2,})(s\b|'s\b)?(?![A-Za-z0-9])(\.(?!\.|\w))?")
_DOTTED = re.compile(r"(?<![A-Za-z.])((?:[A-Za-z]\.){2,}|(?:[A-Z]\.\s){2,}(?=[A-Z][a-z]))('s\b|s\b)?")
_INITIAL = re.compile(rf"(?<![A-Za-z.'])([A-Z])\.(?=\s(?:[A-Z][a-z]|[A-Z]\.))(?!\s(?:{STARTERS})\b)")
_AND_LETTERS = re.compile(r"\b([A-Z]{1,2})\s?&\s?([A-Z]{1,2})\b")
_OKAY = re.compile(r"\bO\.?K\b\.?(?!\w)")
_DEGREE = re.compile(r"\b(?:Ph\.?\s?D|[BM]\.?Sc)(?:\b\.?|(s)\b)(?!\w)")
_AFTER_THE = re.compile(r"\bthe\s$", re.IGNORECASE)


def spell(letters: str) -> str:
    """ "FBI" -> "f.b.i."."""
    return ".".join(letters.lower()) + "."


def _has_capital_neighbor(text: str, start: int, end: int) -> bool:
    """Whether the word before or after is in capitals too, as in a phrase of capitals."""
    before, after = re.findall(r"[A-Za-z]+", text[max(0, start - 30) : start]), re.match(r"\W*([A-Za-z]+)", text[end:])
    words = [*before[-1:], *([after[1]] if after else [])]
    return any(len(word) > 1 and word.isupper() and not is_spelled(word) for word in words)


def _read_capitals(match: re.Match) -> str:
    word, ending, stop = match[1], match[2] or "", match[3] or ""
    if not is_spelled(word):
        return match[0].lower()
    spelled = spell(word) + (ending + stop if ending else "")  # without one its last full stop ends the sentence too
    if word == "US" and _AFTER_THE.search(match.string[: match.start()]):
        return spelled
    if word in AMBIGUOUS and _has_capital_neighbor(match.string, match.start(), match.end()):
        return match[0].lower()
    return spelled


def _read_degree(match: re.Match) -> str:
    return spell(re.sub("[^A-Za-z]", "", match[0].removesuffix("s"))) + (match[1] or "")


def _read_dotted(match: re.Match) -> str:
    letters = "".join(match[1].split()).lower()
    return letters + (match[2] or "") + (" " if match[1].endswith(" ") else "")


def read_letters(text: str) -> str:
    """Spell initialisms and write every other word of capitals in lower case."""
    text = _OKAY.sub("okay", text)
    text = _DEGREE.sub(_read_degree, text)
    text = _AND_LETTERS.sub(
        lambda match: " and ".join(spell(part) if len(part) > 1 else part for part in match.groups()), text
    )
    text = _DOTTED.sub(_read_dotted, text)
    text = _INITIAL.sub(r"\1", text)
    return _CAPITALS.sub(_read_capitals, text)
