"""Convert text to phones of its language with eSpeak NG, for training and speaking with phone models."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from common.errors import InputError
from common.text.espeak import transcribe, unlinked
from common.text.normalization.english.characters import is_phonetic, script_of
from common.text.normalization.rules import rules
from common.text.symbols import BOUNDARY, CODE_POINTS, G2P_SETS, SILENCES, SymbolTable, canonical_phone
from common.text.tables import word_table

_SILENCE, _PAUSE, _ = SILENCES
# Stress, length and the mark of syllabic consonants ("button"): left out if the set has no symbols for them.
_OPTIONAL = "ˈˌː\u0329"

_LANGUAGE = re.compile(r"\([a-z][a-z0-9-]*\)")  # "(en)": the following words are in another language
# Phones without IPA in eSpeak's tables of some languages, which give its own names instead.
_REWRITES = (
    *(("s.", "ʂ"), ("z.", "ʐ"), ("t.", "ʈ"), ("d.", "ɖ"), ("n.", "ɳ"), ("l.", "ɭ"), ("i.", "ɨ"), (".", "")),
    *(("S", "ʃ"), ("Z", "ʒ"), ("N", "ŋ"), ("A", "ɑ"), ("X", "χ"), ("ε", "ɛ"), ("ʦ", "t͡s")),
)
_UNREAD_CHINESE = "丆"  # a character that eSpeak NG doesn't read in any language
_EMOJI = re.compile("[\u231a-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]")  # eSpeak NG says their names
_BRACES = re.compile(r"\{([^}]*)\}")
# Marks that end a clause; quotes and spaces may follow, and then the letter up to which eSpeak has looked ahead.
_ENDS = ",.;:!?…—"
BETWEEN = frozenset((BOUNDARY, *SILENCES, *_ENDS))  # symbols between words
_END = re.compile(rf"([{_ENDS}])[{_ENDS}]*[^\w{_ENDS}]*\w?$")
_BEGIN = re.compile(rf"\W*?([{_ENDS}])")
_UNSAID = re.compile(r"[^\w&@#%+=*/°$£€¥₩₹¢]*")  # between phones in braces; eSpeak would say its name: "exclamation"
_keep_marks = rules("swallowed_marks")
_ENDS_ELSEWHERE = str.maketrans("、，。！？；：।॥؟،؛·–", ",,.!?;:..?,;;—")


class SpokenSymbol(NamedTuple):
    """A phone, boundary, pause or mark, and where it comes from."""

    symbol: str
    part: int = -1  # of the text split at curly braces; odd parts were in braces
    word: int = -1  # eSpeak's word in the part, which may be several words of the text ("of the"); -1: none


def sounds_of_text(text: str, *, language: str, table: SymbolTable) -> list[SpokenSymbol]:
    """Return eSpeak NG's phones for ``text``, with `sil` at both ends; none if nothing is said.

    Marks that end clauses and phones in curly braces are kept, `#` separates words, and `sp` is a pause (in the set
    `ipa`, every pause). Raises InputError for a language that eSpeak NG lacks.
    """
    if table.name not in G2P_SETS:
        raise InputError(f"symbol set {table.name!r}: eSpeak NG's phones are in {', '.join(G2P_SETS)}")
    sounds: list[SpokenSymbol] = []
    parts = _BRACES.split(" ".join(text.split()))
    for index, part in enumerate(parts):
        if index % 2:  # was in braces
            given = [SpokenSymbol(phone, index, 0) for phone in canonical_phone(part).split()]
            sounds += [SpokenSymbol(BOUNDARY), *given, SpokenSymbol(BOUNDARY)]
            continue
        if sounds and (begins := _BEGIN.match(_usual(part))):  # eSpeak would skip it
            sounds.append(SpokenSymbol(begins[1]))
        if len(parts) > 1 and _UNSAID.fullmatch(part):
            continue
        n_words = 0
        for clause in transcribe(_keep_marks(part), language=language):
            for word in filter(any, clause.words):
                sounds += _sounds_of_word(word, table, index, n_words)
                n_words += 1
            mark = _END.search(_usual(clause.text))
            sounds.append(SpokenSymbol(mark[1] if mark else BOUNDARY))
    return _arranged(sounds, table)


def _words(text: str, language: str) -> list[list[str]]:
    return [word for clause in transcribe(text, language=language) for word in clause.words if any(word)]


@lru_cache(maxsize=50_000)
def is_named(letter: str, language: str) -> bool:
    """Whether eSpeak NG says a character's name ("Chinese letter", "esh", "grinning face"): emoji, other scripts."""
    if _EMOJI.match(letter):
        return True
    script = script_of(letter)
    if script == "Chinese":  # some languages read some of them
        return _words(letter, language) == _words(_UNREAD_CHINESE, language)
    word = word_table("script_words").get(script)
    if word is None:
        return is_phonetic(letter)
    return len(_words(word, language)) >= len(word)  # eSpeak NG says the name of each letter


def _sounds_of_word(word: Sequence[str], table: SymbolTable, part: int, number: int) -> list[SpokenSymbol]:
    """Convert one of eSpeak's words: the boundary or pause before it, its phones, and a pause after it, if any."""
    names = [_LANGUAGE.sub("", name) for name in word]
    if table.name == CODE_POINTS:
        return [SpokenSymbol(BOUNDARY), *(SpokenSymbol(canonical_phone(name), part, number) for name in names if name)]
    names = list(map(unlinked, names))
    # One unnamed phone before a word, or two after it, mean a pause; one after it links it to the next word.
    before = SpokenSymbol(_PAUSE if not names[0] else BOUNDARY)
    phones = [SpokenSymbol(_in_set(name, table), part, number) for name in names if name]
    return [before, *phones, *([SpokenSymbol(_PAUSE)] if names[-2:] == ["", ""] else [])]


def _in_set(name: str, table: SymbolTable) -> str:
    for old, new in _REWRITES:
        name = name.replace(old, new)
    return "".join(mark for mark in canonical_phone(name) if mark in table or mark not in _OPTIONAL)


def _usual(text: str) -> str:
    """Replace the punctuation of other scripts with the symbol set's."""
    return unicodedata.normalize("NFC", text).translate(_ENDS_ELSEWHERE)


def _arranged(sounds: list[SpokenSymbol], table: SymbolTable) -> list[SpokenSymbol]:
    """Put sounds between silences, and keep only the strongest of adjacent boundaries, pauses and marks."""
    strength = {BOUNDARY: 0, _PAUSE: 1} | dict.fromkeys(_ENDS, 2)
    kept: list[SpokenSymbol] = []
    for sound in sounds:
        if sound.symbol in strength and sound.symbol not in table:
            pause = "," if table.name == CODE_POINTS else _PAUSE
            sound = sound._replace(symbol=pause if sound.symbol != BOUNDARY else "")
        if sound.symbol not in strength:
            kept += [sound] if sound.symbol else []
        elif kept and kept[-1].symbol in strength:
            kept[-1] = max(kept[-1], sound, key=lambda one: strength[one.symbol])
        elif kept:
            kept.append(sound)
    while kept and strength.get(kept[-1].symbol, 2) < 2:
        del kept[-1]
    begin, end = (int([one.symbol for one in kept[place : place + 1 or None]] == [_SILENCE]) for place in (0, -1))
    kept = kept[begin : len(kept) - end]  # without silences given in braces
    if table.name == CODE_POINTS:
        kept = _with_spaces(kept)
    spoken = any(sound.symbol not in strength for sound in kept)
    return [SpokenSymbol(_SILENCE), *kept, SpokenSymbol(_SILENCE)] if spoken else []


def _with_spaces(sounds: list[SpokenSymbol]) -> list[SpokenSymbol]:
    """Add a boundary after each mark; at the end, only after a mark that doesn't end a sentence, as in Piper."""
    spaced: list[SpokenSymbol] = []
    for place, sound in enumerate(sounds, 1):
        follows = sound.symbol in _ENDS and (place < len(sounds) or sound.symbol in ",:;")
        spaced += [sound, SpokenSymbol(BOUNDARY)] if follows else [sound]
    return spaced
