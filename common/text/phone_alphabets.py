"""Convert IPA or ARPAbet phones, as people write them, to a voice's symbols."""

import re

from common.errors import InputError, at, shown
from common.text.config import TextConfig
from common.text.espeak import unlinked
from common.text.g2p import BETWEEN
from common.text.symbols import ARPABET, CODE_POINTS, G2P_SETS, canonical_phone, get_symbol_table, name_symbol
from common.text.tables import word_table

ALPHABETS = ("ipa", "arpabet")
_EXAMPLES = {"ipa": "həlˈoʊ", "arpabet": "HH AH0 L OW1"}

_ARPABET_TO_IPA = word_table("arpabet_to_ipa")
_UNSTRESSED = {"AH": "ə", "ER": "ɚ", "IY": "i"}  # if marked with a 0
_STRESS = {"1": "ˈ", "2": "ˌ"}  # ARPAbet's and IPA's
_VOWELS = frozenset("ɑɘɞɤɵʉaeiouyæøœɒɔəɜɛɨɪɯɶʊɐʌʏɚɝᵻ")
_TIE = "\u0361"
_WRITTEN = str.maketrans({"\u035c": _TIE, "'": "ˈ", ":": "ː", "g": "ɡ"})  # alternative characters
_BETWEEN_SYLLABLES = re.compile(r"[\s.‿]+")
_ARPABET_WORD = re.compile(r"[A-Z]+[0-9]?")


def alphabet_of(phones: str) -> str:
    """Return ``arpabet`` for words in capitals such as "HH AH0 L OW1", else ``ipa``."""
    return "arpabet" if all(map(_ARPABET_WORD.fullmatch, phones.split())) else "ipa"


def phones_for_voice(phones: str, *, alphabet: str, config: TextConfig, where: str = "") -> list[str]:
    """Return phones in ``alphabet`` (``ipa`` or ``arpabet``) as symbols of the voice, stress before its vowel.

    ARPAbet is converted to IPA for an IPA voice; nothing else is converted. Raises InputError.
    """
    table = get_symbol_table(config.symbol_set)
    to_ipa = table.name in G2P_SETS
    if not to_ipa and (alphabet == "ipa" or (table.phones and table.name != "arpabet")):
        reads = f"phones of {table.name}" if table.phones and table.name != "arpabet" else "ARPAbet"
        raise InputError(f"{shown(phones)}{at(where)}: {alphabet} is not converted, but the voice reads {reads}")
    given = phones.upper()
    if alphabet == "ipa":
        given = _BETWEEN_SYLLABLES.sub("", canonical_phone(phones).strip().strip("/[]").translate(_WRITTEN))
    if not given.strip():
        raise InputError(f"{shown(phones)}{at(where)}: no phones; expected such as {_EXAMPLES[alphabet]}")
    try:
        if alphabet == "arpabet":
            ipa = "".join(map(_ipa_of, given.split()))
            return _split_ipa(ipa, table.name) if to_ipa else given.split()
        return _split_ipa(given, table.name)
    except ValueError as error:
        raise InputError(f"{shown(phones)}{at(where)}: {error}; expected such as {_EXAMPLES[alphabet]}") from error


def _ipa_of(phone: str) -> str:
    """Convert an ARPAbet phone to IPA; raises ValueError for anything else."""
    if phone not in ARPABET:
        raise ValueError(f"{shown(phone)} is not an ARPAbet phone")
    name, stress = phone.rstrip("012"), phone[-1]
    ipa = _UNSTRESSED.get(name, _ARPABET_TO_IPA[name]) if stress == "0" else _ARPABET_TO_IPA[name]
    return _STRESS.get(stress, "") + ipa


def _split_ipa(ipa: str, symbol_set: str) -> list[str]:
    """Split IPA into symbols of a set, with stress before the vowel, as in eSpeak NG; raises ValueError for others."""
    table = get_symbol_table(symbol_set)
    ipa = ipa.replace(_TIE, "") if symbol_set == CODE_POINTS else unlinked(ipa)
    symbols: list[str] = []
    stress = ""
    for symbol in table.splitter(without=BETWEEN).findall(ipa):
        if symbol in _STRESS.values():
            stress = symbol
        elif symbol in table and symbol not in BETWEEN:
            if stress and symbol in _VOWELS:
                symbols += [stress] if stress in table else []
                stress = ""
            symbols.append(symbol)
        elif symbol != "ː":
            raise ValueError(f"{name_symbol(symbol)} is not a phone of symbol set {symbol_set}")
    return symbols
