"""The tables of words.txt, symbols.txt, languages.txt and normalization/languages, and the rules of rules.txt."""

import re
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent
_NAMES = ("normalization/words.txt", "normalization/rules.txt", "symbols.txt", "languages.txt")
_FILES = (*(_HERE / name for name in _NAMES), *sorted((_HERE / "normalization" / "languages").glob("*.txt")))
_TEXT = "\n\n".join(path.read_text(encoding="utf-8") for path in _FILES)


def _read_tables(text: str) -> dict[str, tuple[str, str]]:
    """Return the text of each table, and the signs of the texts that its rules apply to."""
    tables: dict[str, tuple[str, str]] = {}
    for name, signs, table in re.findall(r"^\[(\w+)(?: (\S+))?\]\n([^\n]+(?:\n[^\n]+)*)", text, re.MULTILINE):
        assert name not in tables, f"two tables have the name [{name}]; rename one"
        tables[name] = table, signs
    return tables


_TABLES = _read_tables(_TEXT)
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
    return re.compile(_NAMED.sub(_named, pattern))


def _named(match: re.Match) -> str:
    name, case = match.groups()
    if name in _PATTERNS:
        return _NAMED.sub(_named, _PATTERNS[name])
    text = table_text(name)
    if "|" in text:
        text = text.replace("\n", "")
    else:
        text = "|".join(re.escape(key) for key in sorted(word_table(name), key=len, reverse=True))
    return getattr(text, case)() if case else text
