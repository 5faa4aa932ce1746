"""Read LaTeX formulas, as people paste them: "$\\frac{a}{b}$" -> "a over b"."""

import re

from common.text.normalization.numbers import number_words
from common.text.normalization.rules import rules
from common.text.tables import compiled

_FORMULA = compiled("<FORMULA>")
_IS_FORMULA = re.compile(r"[\\^_=<>+]|^[A-Za-z]{1,2}$")
_LETTERS = re.compile(
    r"\\(?:text\w*|mathrm|operatorname)\s*\{[^{}]*\}|\\[A-Za-z]+|(?<![A-Za-z])[A-Za-z]{2}(?![A-Za-z])"
)
_MOST_NESTED = 8
_read_text, _read_groups, _read_commands = rules("latex_text"), rules("latex_groups"), rules("latex_signs")


def read_formulas(text: str) -> str:
    """Write out a text's formulas in dollar signs, and its single fractions, roots and symbols."""
    return _FORMULA.sub(_formula, _read_text(text)) if "$" in text or "\\" in text else text


def _formula(match: re.Match) -> str:
    formula = next(filter(None, match.groups()), "")
    if match[2] and not _IS_FORMULA.search(formula):
        return match[0]  # sums of money
    formula = _LETTERS.sub(lambda found: found[0] if found[0][0] == "\\" else " ".join(found[0]), formula)
    for _ in range(_MOST_NESTED):  # the innermost braces first
        before, formula = formula, _read_groups(formula)
        if formula == before:
            break
    words = re.sub(r"[0-9]+(?:\.[0-9]+)?", lambda number: number_words(number[0]), _read_commands(formula))
    return " ".join(words.split())  # digits before letters would be read as a count of a unit
