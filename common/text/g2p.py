"""Text as phones of its language, by eSpeak NG: what phone models of any language are trained on and speak."""

import re
import unicodedata

from common.errors import InputError
from common.text.espeak import Clause, transcribe, unlinked
from common.text.symbols import SILENCES, SymbolTable, canonical_phone

G2P_SETS = ("ipa_marked", "ipa")
_SILENCE, _PAUSE, _ = SILENCES
_BOUNDARY = "#"
_OPTIONAL = "ˈˌː"  # stress and length, which are left out where the set has no symbols for them

_LANGUAGE = re.compile(r"\([a-z][a-z0-9-]*\)")  # "(en)": the words that follow are said in another language
# Phones for which eSpeak's tables of some languages have no IPA, and give its own names instead.
_REWRITES = (
    *(("s.", "ʂ"), ("z.", "ʐ"), ("t.", "ʈ"), ("d.", "ɖ"), ("n.", "ɳ"), ("l.", "ɭ"), ("i.", "ɨ"), (".", "")),
    *(("S", "ʃ"), ("Z", "ʒ"), ("N", "ŋ"), ("A", "ɑ"), ("X", "χ"), ("ε", "ɛ"), ("ʦ", "t͡s")),
)
_BRACES = re.compile(r"\{([^}]*)\}")
# The marks that end a clause; after them stand quotes and spaces, and the letter up to which eSpeak has looked ahead.
_ENDS = ",.;:!?…—"
_END = re.compile(rf"([{_ENDS}])[{_ENDS}]*[^\w{_ENDS}]*\w?$")
_BEGIN = re.compile(rf"\W*?([{_ENDS}])")
_ENDS_ELSEWHERE = str.maketrans("、，。！？；：।॥؟،؛·–", ",,.!?;:..?,;;—")


def phones_of_text(text: str, *, language: str, table: SymbolTable) -> str:
    """Phones separated by spaces, as eSpeak NG would say ``text``; nothing for a text of which nothing is said.

    Silence (`sil`) stands at both ends. Marks that end clauses are kept, `#` stands between words and `sp` for a pause
    within a clause; a set without `#` and marks (`ipa`) has `sp` for every pause. Phones in curly braces stay as they
    are: ``{m ˈ y l ɐ} kommt``.

    Raises InputError if eSpeak NG has no such language, or its library is missing.
    """
    if table.name not in G2P_SETS:
        raise InputError(f"symbol set {table.name!r}: eSpeak NG's phones are in {' and '.join(G2P_SETS)}")
    pieces: list[str] = []
    for index, part in enumerate(_BRACES.split(" ".join(text.split()))):
        if index % 2:  # stood in braces
            pieces += [_BOUNDARY, *canonical_phone(part).split(), _BOUNDARY]
            continue
        if pieces and (begins := _BEGIN.match(_usual(part))):  # which eSpeak would skip
            pieces.append(begins[1])
        for clause in transcribe(part, language=language):
            pieces += [*_pieces(clause, table), _mark(clause)]
    return " ".join(_arranged(pieces, table))


def _pieces(clause: Clause, table: SymbolTable) -> list[str]:
    """Phones, boundaries and pauses of a clause."""
    pieces: list[str] = []
    for word in filter(any, clause.words):
        names = [unlinked(_LANGUAGE.sub("", name)) for name in word]
        # An unnamed phone before a word, or two after it, are a pause; one after it links it to the next.
        pieces.append(_PAUSE if not names[0] else _BOUNDARY)
        pieces += [_in_set(name, table) for name in names if name]
        if names[-2:] == ["", ""]:
            pieces.append(_PAUSE)
    return pieces


def _in_set(name: str, table: SymbolTable) -> str:
    for old, new in _REWRITES:
        name = name.replace(old, new)
    return "".join(mark for mark in canonical_phone(name) if mark in table or mark not in _OPTIONAL)


def _mark(clause: Clause) -> str:
    """The punctuation that ends a clause, or nothing but a boundary where it continues."""
    found = _END.search(_usual(clause.text))
    return found[1] if found else _BOUNDARY


def _usual(text: str) -> str:
    """The text with the punctuation of other scripts as that of the symbol set."""
    return unicodedata.normalize("NFC", text).translate(_ENDS_ELSEWHERE)


def _arranged(pieces: list[str], table: SymbolTable) -> list[str]:
    """Pieces between silences; of boundaries, pauses and marks that meet, the strongest stays."""
    strength = {_BOUNDARY: 0, _PAUSE: 1} | dict.fromkeys(_ENDS, 2)
    kept: list[str] = []
    for piece in filter(None, pieces):
        if piece in strength and piece not in table:
            piece = _PAUSE if piece != _BOUNDARY else ""
        if piece not in strength:
            kept += [piece] if piece else []
        elif kept and kept[-1] in strength:
            kept[-1] = max(kept[-1], piece, key=strength.__getitem__)
        elif kept:
            kept.append(piece)
    while kept and strength.get(kept[-1], 2) < 2:
        del kept[-1]
    begin, end = (int(kept[place : place + 1 or None] == [_SILENCE]) for place in (0, -1))  # given in braces
    kept = kept[begin : len(kept) - end]
    return [_SILENCE, *kept, _SILENCE] if any(piece not in strength for piece in kept) else []
