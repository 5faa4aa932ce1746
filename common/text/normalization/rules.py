"""Apply rules from rules.txt, which documents their syntax, to numbers, signs and abbreviations in a text."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from common.text.normalization import numbers
from common.text.tables import rule_lines, table_text, word_table

Words = Callable[[re.Match], str]
Functions = Mapping[str, Callable[[Any], Any]]

_NUMBERS = "cardinal digits identifier number_words ordinal plural roman two_digits year"
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {name: getattr(numbers, name) for name in _NUMBERS.split()}
_FUNCTIONS["lower"] = str.lower
_OPTIONAL = re.compile(r"\[([^]]*)\]")
_FIELD = re.compile(r"\{(\w+)((?::\w+)*)\}")


def rules(*names: str, **functions: Callable[[Any], str]) -> Callable[[str], str]:
    """Return a function that applies the rules of these names to a text; the rules can call ``functions``."""
    return rules_of(names, functions)


def rules_of(names: Sequence[str], functions: Functions, *, language: str = "") -> Callable[[str], str]:
    """Like `rules`, with a ``language`` in place of LANG."""
    lists = []
    for name in names:
        lines, signs = rule_lines(name, language=language)
        steps = [(pattern, _replacement(words, functions)) for pattern, words in lines]
        lists.append((re.compile(f"[{re.escape(signs)}]") if signs else None, steps))

    def apply(text: str) -> str:
        for needed, steps in lists:
            if needed is None or needed.search(text):
                for pattern, words in steps:
                    text = pattern.sub(words, text)
        return text

    return apply


def _replacement(words: str, functions: Functions) -> str | Words:
    """Convert the right side of a rule to a replacement for `re.sub`."""
    if "{" not in words:
        return words
    pieces: list[Words] = []
    for index, part in enumerate(_OPTIONAL.split(words)):  # odd ones were in brackets
        fields = [_field(name, readers, functions) for name, readers in _FIELD.findall(part)]
        texts = _FIELD.sub("\0", part).split("\0")
        pieces.append(_joined(texts, fields, is_optional=index % 2 == 1))
    return pieces[0] if len(pieces) == 1 else lambda match: "".join(piece(match) for piece in pieces)


def _joined(texts: list[str], fields: list[Words], *, is_optional: bool) -> Words:
    """Join texts with fields between them; nothing if ``is_optional`` and the fields are empty."""

    def words(match: re.Match) -> str:
        values = [field(match) for field in fields]
        if is_optional and not any(values):
            return ""
        return texts[0] + "".join(value + text for value, text in zip(values, texts[1:]))

    return words


def _field(name: str, readers: str, functions: Functions) -> Words:
    """Return the words of {name}, from the match, or of {2:reader:reader}, from a group, by the readers in turn."""
    if not name.isdigit():
        return functions[name]
    group, chain = int(name), [_reader(reader, functions) for reader in readers.split(":")[1:]]

    def words(match: re.Match) -> str:
        value: Any = match[group] or ""
        for read in chain if value else ():
            value = read(value)
        return str(value)

    return words


def _reader(name: str, functions: Functions) -> Callable[[Any], Any]:
    """Return the function, rules or table of that name; a table is also searched for the words in lower case."""
    if read := functions.get(name) or _FUNCTIONS.get(name):
        return read
    if " => " in table_text(name):
        return rules_of([name], functions)
    table = word_table(name)
    return lambda words: table.get(words) or table[words.lower()]
