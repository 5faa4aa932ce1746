"""Phones as vectors of phonological features, from a table such as panphon's ``ipa_all.csv`` (Mortensen et al. 2016).

It is comma- or tab-separated: a header, then a row for each phone, with +, - and 0, or with numbers.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from common.errors import InputError, shown
from common.files import read_text
from common.text.symbols import FEATURE_TABLE, PADDING, SILENCES, SymbolTable, canonical_phone

SILENCE = "sil"  # the feature of silences; appended, as published, unless the table has it
_SIGNS = {"+": 1.0, "-": -1.0}
_EXPECTED = "expected a header such as symbol,syl,son and a row for each phone such as k,-,- or k,-1,-1"


@dataclass(frozen=True)
class PhoneFeatures:
    """A table of phones: their ids, as in any symbol set, and the vectors that a network reads."""

    names: tuple[str, ...]  # of the features
    table: SymbolTable
    vectors: tuple[tuple[float, ...], ...]  # for each symbol in the table; zeros for padding


def read_phone_features(path: Path) -> tuple[str, ...]:
    """Read a table as lines with tabs, as in TextConfig.phone_features; raises InputError."""
    text = read_text(path)
    rows = csv.reader(text.splitlines(), delimiter="\t" if "\t" in text.partition("\n")[0] else ",")
    header = [cell.strip() for cell in next(rows, [])]
    if len(header) < 2 or len(set(header)) < len(header):
        raise InputError(f"{path}:1: no distinct feature names in the header; {_EXPECTED}")
    found: dict[str, list[str]] = {}
    for number, row in enumerate(rows, 2):
        try:
            phone, *values = [canonical_phone(cell.strip()) for cell in row] or [""]
            numbers = [f"{_SIGNS.get(value) or float(value):g}" for value in values]
        except ValueError as error:
            raise InputError(f"{path}:{number}: {shown(','.join(row))}: expected +, -, 0 or a number") from error
        if row and (len(row) != len(header) or phone.split() != [phone]):
            what = f"{len(row)} columns for {shown(phone)}, the header has {len(header)}"
            raise InputError(f"{path}:{number}: {what}; {_EXPECTED}")
        if row and found.setdefault(phone, numbers) != numbers:
            raise InputError(f"{path}:{number}: {shown(phone)} has different features in an earlier line; keep one")
    if not found:
        raise InputError(f"{path}: lists no phone; {_EXPECTED}")
    return tuple("\t".join(row) for row in (["", *header[1:]], *([phone, *values] for phone, values in found.items())))


@lru_cache(maxsize=4)
def phone_features(lines: Sequence[str]) -> PhoneFeatures:
    """Parse a TextConfig's table, and add the silences that it doesn't list."""
    header, *rows = (line.split("\t") for line in lines)
    names, known = header[1:], {phone: tuple(map(float, values)) for phone, *values in rows}
    if SILENCE not in names:
        names.append(SILENCE)
        known = {phone: (*values, 0.0) for phone, values in known.items()}
    silent = tuple(float(name == SILENCE) for name in names)
    vectors = {PADDING: (0.0,) * len(names)} | dict.fromkeys(SILENCES, silent) | known
    return PhoneFeatures(tuple(names), SymbolTable(FEATURE_TABLE, (*vectors,), phones=True), (*vectors.values(),))
