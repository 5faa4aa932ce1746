"""The tables of words.txt, symbols.txt, languages.txt and normalization/languages, and the rules of rules.txt."""

import re
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
_NAMES = ("normalization/words.txt", "normalization/rules.txt", "symbols.txt", "languages.txt")
_FILES = (*(_HERE / name for name in _NAMES), *sorted((_HERE / "normalization" / "languages").glob("*.txt")))
_TEXT = "\n\n".join(path.read_text(encoding="utf-8") for path in _FILES)
_TABLES = {
    name: (table, signs)
    for name, signs, table in re.findall(r"^\[(\w+)(?: (\S+))?\]\n([^\n]+(?:\n[^\n]+)*)", _TEXT, re.MULTILINE)
}
_NAMED = re.compile(r"(?<!\?P)<(\w+)(?::(lower|upper))?>")


def table_text(name: str) -> str:
    """Return a table's text unchanged."""
    return _TABLES[name][0]


def word_set(name: str) -> frozenset[str]:
    """Return a table's words, separated by spaces or line breaks."""
    return frozenset(table_text(name).split())


@cache
def word_table(name: str) -> dict[str, str]:
    """Return a table's entries ``key words``, separated by commas or line breaks: "Mr mister, etc et cetera"."""
    entries = (entry.split(maxsplit=1) for entry in re.split(r"[,\n]", table_text(name)))
    return {key: words.rstrip() for key, words in entries}


def rule_lines(name: str, *, language: str = "") -> tuple[list[tuple[re.Pattern, str]], str]:
    """Return lines ``pattern => words``, with ``language`` in place of LANG, and the signs of texts they apply to."""
    text, signs = _TABLES[name]
    pairs = (line.split(" => ") for line in text.replace("LANG", language).split("\n"))
    return [(compiled(pattern), words.removeprefix('"').removesuffix('"')) for pattern, words in pairs], signs


_PATTERNS = dict(line.split(" = ", 1) for line in table_text("patterns").split("\n"))


def compiled(pattern: str) -> re.Pattern:
    """Compile a pattern in which <name> stands for another pattern, or a table's alternatives or keys."""
    while (with_names := _NAMED.sub(_named, pattern)) != pattern:
        pattern = with_names
    return re.compile(pattern)


def _named(match: re.Match) -> str:
    name, case = match.groups()
    if name in _PATTERNS:
        return _PATTERNS[name]
    text = table_text(name)
    if "|" in text:
        text = text.replace("\n", "")
    else:
        text = "|".join(re.escape(key) for key in sorted(word_table(name), key=len, reverse=True))
    return getattr(text, case)() if case else text
