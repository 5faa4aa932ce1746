"""Ordered tables of the symbols a voice can be trained on: characters with ARPAbet, and phone sets."""

import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from string import ascii_lowercase, ascii_uppercase

from common.errors import check_choice, shown

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

_IPA = """
    ʘ ǀ ǃ ǂ ǁ
    k͡p ɡ͡b c ɡ k q ɖ ɟ ɠ ɢ ʄ ʈ ʛ b b͡d d d̪ p p͡t t t̪ ɓ ɗ
    b͡β k͡x p͡ɸ q͡χ ɡ͡ɣ ɢ͡ʁ c͡ç d͡ʒ t͡ʃ ɖ͡ʐ ɟ͡ʝ ʈ͡ʂ b͡v d̪͡z̪ d̪͡ð d̪͡ɮ̪ d͡z d͡ɮ d͡ʑ p͡f t̪͡s̪ t̪͡ɬ̪ t̪͡θ t͡s t͡ɕ t͡ɬ
    x ç ħ ɣ ʁ ʂ ʃ ʐ ʒ ʕ ʝ χ f s s̪ v z z̪ ð ɸ β θ ɧ ɕ ɬ ɬ̪ ɮ ʑ
    ɱ ʔ ŋ ɳ ɴ m n n̪ ɲ ɥ ɰ ʋ ʀ ʙ ʟ ɭ ɽ ʎ r r̪ ɫ ɺ ɾ ʍ h j w ɹ ɻ l l̪ ɦ
    ɑ ɘ ɞ ɤ ɵ ʉ a e i o u y æ ø œ ɒ ɔ ə ɜ ɛ ɨ ɪ ɯ ɶ ʊ ɐ ʌ ʏ
    ˩ ˨ ˧ ˦ ˥
"""
_XSAMPA = r"""
    X-SAMPA p b t d t` d` c J\ k g q G\ ? m F n n` J N N\ B\ r R\ 4 r` p\ B f v T D s z S Z s` z` C j\ x G X R X\ ?\ h
    K K\ P r\ r\` j M\ l l` L L\ p_> t_> t`_> c_> k_> q_> b_< d_< k_< g_<
    i y 1 } M u I Y U e 2 7 o @ @\ 8 E 9 V O { 6 a a_X & A Q
    _0 _v _h _t _k _N _d _a _m _O _c _+ _- _" _x = _^ _w ' _G _?\ _e _r _o ~ _n _l _} _A _q _T _H _M _L _B
    " % : :\ _X . W w H H\ <\ >\ s\ z\ O\ |\ !\ '=\ |\|\ l\ 3 G\_< @` 3\ h\ 5 J\_< _>
    3` tS dZ ts\ dz\ tK kp gb Nm ts` tz`
"""
_COMBILEX = "3 5 @ A D E I N O S T U V Z a b d dZ e e~ f g h i j k l l= m m= n n= o~ p r s t tS u v w z"

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
    "ipa": _IPA,
    "ipa_marked": f"{_IPA} {_MARKS}",
    "xsampa": _XSAMPA,
    "combilex": _COMBILEX,
}

CHARACTER_SETS = tuple(name for name in _CHARACTERS if name != EXPANDED_1_1)  # that a voice can be trained with
PHONE_SETS = tuple(_PHONES)
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
