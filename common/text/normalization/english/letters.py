"""Capitals: initialisms are spelled ("FBI" -> "f.b.i."), words in capitals are words, initials lose their stops."""

import re

from common.text.normalization.english.abbreviations import STARTERS
from common.text.normalization.english.pronunciation import AMBIGUOUS, is_spelled

_CAPITALS = re.compile(r"(?<![A-Za-z0-9'.])([A-Z]{2,})(s\b|'s\b)?(?![A-Za-z0-9])(\.(?!\.|\w))?")
_CAPITAL_WORD = re.compile(r"(?<![A-Za-z])[A-Z]{2,}(?![A-Za-z])")
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
