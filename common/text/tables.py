"""The tables of words.txt and symbols.txt."""

import re
from pathlib import Path

_HERE = Path(__file__).parent
_TEXT = "\n\n".join(
    path.read_text(encoding="utf-8") for path in (_HERE / "normalization" / "words.txt", _HERE / "symbols.txt")
)
_TABLES = dict(re.findall(r"^\[(\w+)\]\n([^\n]+(?:\n[^\n]+)*)", _TEXT, re.MULTILINE))


def word_table(name: str) -> dict[str, str]:
    """Entries ``key words`` between commas or line ends: "Mr mister, etc et cetera"."""
    entries = (entry.split(maxsplit=1) for entry in re.split(r"[,\n]", _TABLES[name]))
    return {key: words.rstrip() for key, words in entries}


def table_text(name: str) -> str:
    """All of a table, as it stands."""
    return _TABLES[name]


def word_rules(name: str) -> list[tuple[re.Pattern, str]]:
    """Lines ``pattern => replacement``, in the order in which they apply."""
    pairs = (line.split(" => ") for line in _TABLES[name].splitlines())
    return [(re.compile(pattern), replacement) for pattern, replacement in pairs]


def word_set(name: str) -> frozenset[str]:
    """Words between spaces or line ends."""
    return frozenset(_TABLES[name].split())


def word_pattern(name: str) -> str:
    """Alternatives of a regular expression: "King|Queen|Pope"."""
    return _TABLES[name].replace("\n", "")
