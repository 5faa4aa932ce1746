"""Ordered tables of the symbols that a voice can be trained on: characters with ARPAbet, and phone sets."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from unicodedata import combining, is_normalized, normalize

from common.errors import check_choice, shown
from common.text.tables import table_text

EDGE_SILENCE = "sil"  # before the first and after the last phone
PAUSE = "sp"  # between phones
PADDING = "_"
BOUNDARY = "#"  # between words
FEATURE_TABLE = "of --phone-features"  # in messages, the symbol set of a voice that reads phonological features
SILENCES = ("sil", "sp", "spn")  # long silence, short pause, spoken noise: the Montreal Forced Aligner's marks
_MOST_NAMED = 5  # symbols, in a message

_VOWELS = [vowel + stress for vowel in table_text("arpabet_vowels").split() for stress in ("", *"012")]
ARPABET = tuple(sorted([*table_text("arpabet_consonants").split(), *_VOWELS]))

CHARACTER_SETS = ("english_basic", "english_basic_lowercase", "english_expanded")  # that a voice can be trained with
EXPANDED_1_1 = "english_expanded_1_1"  # FastPitch 1.1's; it lacks padding, so new voices can't be trained with it
CODE_POINTS = "espeak"  # eSpeak NG's own phones, as Piper's voices read them: each code point is a symbol
PHONE_SETS = ("arpabet", "ipa", "ipa_marked", CODE_POINTS, "xsampa", "combilex")
SYMBOL_SETS = (*CHARACTER_SETS, *PHONE_SETS)
G2P_SETS = (CODE_POINTS, "ipa_marked", "ipa")  # eSpeak NG's phones; new voices use the first set
UNKNOWN_SYMBOLS = ("error", "drop")  # what to do with symbols outside the set


def canonical_phone(text: str) -> str:
    """Return phones with separate characters for diacritics (Unicode NFD), as in the IPA table."""
    return normalize("NFD", text)


# Letters that NFC decomposes, but eSpeak NG reads as one: Bengali "ড়".
_INDIC = {canonical_phone(one): one for one in map(chr, range(0x900, 0xE00)) if not is_normalized("NFC", one)}


def precomposed(text: str) -> str:
    """Return the text with letters and their marks as single characters where possible (Unicode NFC)."""
    if text.isascii():
        return text
    text = normalize("NFC", text)
    for parts, one in _INDIC.items():
        text = text.replace(parts, one)
    return text


def first_few(names: Sequence[str]) -> str:
    """List the first names, and how many more there are."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def name_symbol(symbol: str) -> str:
    """Return a symbol with its code points, since many look alike: ``'’' (U+2019)``."""
    return f"{symbol!r} ({' '.join(f'U+{ord(character):04X}' for character in symbol)})"


def name_counts(symbols: Counter[str]) -> str:
    """List the most frequent symbols with their counts, and how many more there are: ``'“' (2), U+0303 (1)``."""
    named = []
    for symbol, count in symbols.most_common():
        is_mark = combining(symbol[0]) > 0  # it would be drawn over the quote before it
        symbol = symbol.removeprefix("@") if len(symbol) > 1 else symbol
        named.append(f"{f'U+{ord(symbol[0]):04X}' if is_mark else shown(symbol, longest=8)} ({count})")
    return first_few(named)


@dataclass(frozen=True)
class SymbolTable:
    """An ordered set of symbols; a symbol's id is its index, or the last index if it occurs twice."""

    name: str
    symbols: tuple[str, ...]
    padding_id: int = 0
    phones: bool = False  # True: transcripts are sequences of phones; False: characters, with ARPAbet in curly braces

    @cached_property
    def ids(self) -> dict[str, int]:
        return {symbol: index for index, symbol in enumerate(self.symbols)}

    def __contains__(self, symbol: str) -> bool:
        return symbol in self.ids

    def splitter(self, *, without: Collection[str] = ()) -> re.Pattern:
        """Return a pattern of the longest symbol, except padding and those ``without``, else of one character."""
        symbols = sorted({*self.symbols} - {PADDING, *without}, key=len, reverse=True)
        return re.compile("|".join([*map(re.escape, symbols), "."]), re.DOTALL)


@cache
def get_symbol_table(name: str, labels: tuple[str, ...] = ()) -> SymbolTable:
    """Return the symbol table of that name, followed by ``labels``; raises InputError that lists the valid names."""
    check_choice("symbol set", name, (*CHARACTER_SETS, EXPANDED_1_1, *PHONE_SETS))
    if name not in PHONE_SETS:
        characters = table_text("english_expanded")[1:] if name == EXPANDED_1_1 else table_text(name)
        return SymbolTable(name, (*characters, *("@" + phone for phone in ARPABET)))
    phones = canonical_phone(table_text(name.removesuffix("_marked"))).split() if name != "arpabet" else ARPABET
    marks = table_text("ipa_marks").split() if name == "ipa_marked" else []
    if name in ("ipa_marked", CODE_POINTS):
        diacritics = table_text(f"{name.removesuffix('_marked')}_diacritics")
        marks += [chr(int(code, 16)) for code in diacritics.split()]
    return SymbolTable(name, (PADDING, *SILENCES, *phones, *marks, *labels), phones=True)
