"""Tables of words, written as text."""

import re


def word_table(text: str) -> dict[str, str]:
    """Entries ``key words`` between commas or line ends: "Mr mister, etc et cetera"."""
    entries = (entry.split(maxsplit=1) for entry in re.split(r"[,\n]", text) if entry.strip())
    return {key: words.rstrip() for key, words in entries}


def word_set(text: str) -> frozenset[str]:
    """Words between spaces or line ends."""
    return frozenset(text.split())
