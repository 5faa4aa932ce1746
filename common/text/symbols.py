"""Ordered tables of the symbols a voice can be trained on: characters with ARPAbet, and phone sets."""

import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from string import ascii_lowercase, ascii_uppercase

from common.errors import check_choice, shown
from common.text.tables import table_text

EDGE_SILENCE = "sil"  # before the first and after the last phone
PAUSE = "sp"  # between phones
PADDING = "_"
FEATURE_TABLE = "of --phone-features"  # the symbol set of a voice that reads phonological features, in messages
SILENCES = ("sil", "sp", "spn")  # long silence, short pause, spoken noise: the Montreal Forced Aligner's marks
_LETTERS = ascii_uppercase + ascii_lowercase
_MOST_NAMED = 5  # symbols, in a message

_ARPABET_VOWELS = "AA AE AH AO AW AY EH ER EY IH IY OW OY UH UW"  # alone, or with stress 0, 1 or 2
_ARPABET_CONSONANTS = "B CH D DH F G HH JH K L M N NG P R S SH T TH V W Y Z ZH"
ARPABET = tuple(
    sorted(
        _ARPABET_CONSONANTS.split() + [vowel + stress for vowel in _ARPABET_VOWELS.split() for stress in ("", *"012")]
    )
)

EXPANDED_1_1 = "english_expanded_1_1"  # of FastPitch 1.1, without padding, so its own voices cannot be trained with it
_EXPANDED = "!'\",.:;? " + "#%&*+-/[]()" + "_@©°½—₩€$" + "áçéêëñöøćž" + _LETTERS
_CHARACTERS = {
    "english_basic": PADDING + "-" + "!'(),.:;? " + _LETTERS,
    "english_basic_lowercase": PADDING + "-" + "!'\"(),.:;? " + ascii_lowercase,
    # The published set lists "_" twice: as padding (id 0), and again as a character, whose id 21 encoding uses.
    "english_expanded": PADDING + _EXPANDED,
    EXPANDED_1_1: _EXPANDED,
}
# What text has besides phones: the boundary of words, punctuation, stress, length, other marks, and numbers of tones.
_DIACRITICS = (
    *(0x303, 0x308, 0x30A, 0x31A, 0x31D, 0x31E, 0x31F, 0x320, 0x324, 0x325, 0x329, 0x32A, 0x32C, 0x32F, 0x330),
    *(0x33A, 0x33B),
)
_MARKS = "# , . ; : ! ? … — ˈ ˌ ː ˑ ʰ ʲ ʷ ˠ ˤ ᵝ ˞ ʼ 1 2 3 4 5 6 7 8 9 " + " ".join(map(chr, _DIACRITICS))
_PHONES = {
    "arpabet": " ".join(ARPABET),
    "ipa": table_text("ipa"),
    "ipa_marked": f"{table_text('ipa')} {_MARKS}",
    "xsampa": table_text("xsampa"),
    "combilex": table_text("combilex"),
}

CHARACTER_SETS = tuple(name for name in _CHARACTERS if name != EXPANDED_1_1)  # that a voice can be trained with
PHONE_SETS = tuple(_PHONES)
SYMBOL_SETS = (*CHARACTER_SETS, *PHONE_SETS)
G2P_SETS = ("ipa_marked", "ipa")  # of the phones that eSpeak NG says
UNKNOWN_SYMBOLS = ("error", "drop")  # what becomes of symbols outside the set


def canonical_phone(text: str) -> str:
    """Phones with their diacritics as characters of their own (Unicode NFD), as they stand in the IPA table."""
    return unicodedata.normalize("NFD", text)


def name_symbol(symbol: str) -> str:
    """A symbol with its code points, since many look the same: ``'’' (U+2019)``."""
    return f"{symbol!r} ({' '.join(f'U+{ord(character):04X}' for character in symbol)})"


def name_counts(symbols: Counter[str]) -> str:
    """The most frequent symbols with how often each occurs, and how many more there are: ``'“' (2), U+0303 (1)``."""
    named = []
    for symbol, count in symbols.most_common(_MOST_NAMED):
        is_mark = unicodedata.combining(symbol[0]) > 0  # which would be drawn over the quote before it
        symbol = symbol.removeprefix("@") if len(symbol) > 1 else symbol
        named.append(f"{f'U+{ord(symbol[0]):04X}' if is_mark else shown(symbol, longest=8)} ({count})")
    more = len(symbols) - _MOST_NAMED
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class SymbolTable:
    """An ordered set of symbols; a symbol's id is its place, the last one where a symbol stands twice."""

    name: str
    symbols: tuple[str, ...]
    padding_id: int = 0
    phones: bool = False  # True: a transcript is a row of phones; False: characters, with ARPAbet in curly braces

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {symbol: index for index, symbol in enumerate(self.symbols)}

    @property
    def n_symbols(self) -> int:
        """Size of the embedding table, padding included."""
        return len(self.symbols)

    def id_of(self, symbol: str) -> int:
        """A symbol's id; ``KeyError`` when it is not in the set."""
        return self._ids[symbol]

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._ids


@cache
def get_symbol_table(name: str) -> SymbolTable:
    """The symbol table of that name; an unknown name is an ``InputError`` that lists the valid ones."""
    if name in _CHARACTERS:
        return SymbolTable(name, (*_CHARACTERS[name], *("@" + phone for phone in ARPABET)))
    check_choice("symbol set", name, [*_CHARACTERS, *_PHONES])
    return SymbolTable(name, (PADDING, *SILENCES, *canonical_phone(_PHONES[name]).split()), phones=True)
