"""Check a text: its length, markup, and whether it is spelling or phones, as the voice expects."""

import re
from collections import Counter

from common.errors import InputError, at
from common.text.config import TextConfig
from common.text.languages import is_ipa
from common.text.normalization.english.characters import script_of
from common.text.symbols import G2P_SETS, SILENCES, SymbolTable, canonical_phone, first_few, name_symbol

MAX_TRANSCRIPT = 20_000  # characters, some 20 minutes of speech
MAX_WORD = 1_000  # characters between spaces; the English cleaners' time grows with its square

_LONGEST_QUOTE = 40  # characters of a transcript shown in an error

# A tag has a name right after "<", and then nothing or attributes: "a < b", "x<3" and "a<b and c>d" are text.
_MARKUP = re.compile(
    r"</?[A-Za-z][\w.-]*(?::[A-Za-z][\w.-]*)?(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s<>\"']+))*\s*/?>"
    r"|</?[A-Za-z][\w.-]+\s[^<>]*>|<!--|<!\[CDATA\[|<!DOCTYPE\b|<\?xml\b|&(?:amp|lt|gt|quot|apos|nbsp|#[0-9]+|#x[0-9A-Fa-f]+);"
)
_BRACES = re.compile(r"\{[^}]*\}")


def quote(text: str, *, around: str = "") -> str:
    """Quote the text or, if it's long, its beginning or the part that holds ``around``."""
    if len(text) <= _LONGEST_QUOTE:
        return repr(text)
    start = max(0, text.find(around) - _LONGEST_QUOTE // 2) if around else 0
    part = text[start : start + _LONGEST_QUOTE - 6]
    return repr(f"{'...' if start else ''}{part}{'...' if start + len(part) < len(text) else ''}")


def check_length(text: str, *, where: str) -> None:
    """Raise InputError for an utterance or a word that is too long to be one."""
    longest = max(text.split(), key=len, default="") if len(text) > MAX_WORD else ""
    for part, most, unit in ((text, MAX_TRANSCRIPT, "in an utterance"), (longest, MAX_WORD, "between spaces")):
        if len(part) > most:
            raise InputError(f"{quote(part)}: {len(part)} characters, expected at most {most} {unit}{at(where)}")


def check_markup(text: str, *, where: str) -> None:
    """Raise InputError for tags and entities, which would be read aloud."""
    if ("<" in text or "&" in text) and (found := _MARKUP.search(text)):
        what = f"{quote(found[0])} is markup, which is not supported{at(where)}"
        advice = "leave it out, or put spaces around < and > that are text"
        raise InputError(f"{quote(text, around=found[0])}: {what}; {advice}")


def check_kind(text: str, config: TextConfig, table: SymbolTable, *, where: str) -> None:
    """Raise InputError for spelling if the voice reads phones, and for phones if it converts spelling to phones."""
    if config.g2p is None and table.name in G2P_SETS and _is_spelling(text, table):
        language = f"--g2p-language, unless {config.g2p_language}"
        advice = f"add --g2p espeak (and {language}), or separate the phones by spaces"
        what = f"looks like text, but the voice reads phones of {table.name}"
        raise InputError(f"{quote(text)}: {what}{at(where)}; {advice}")
    if config.g2p is not None and (_are_phones(text, table) or is_ipa(text)):
        advice = "for a list of phones add --g2p none (in training: --transcript-type phones), or use curly braces"
        raise InputError(f"{quote(text)}: looks like phones, but the voice reads text{at(where)}; {advice}")


def _is_spelling(text: str, table: SymbolTable) -> bool:
    """Whether most words are neither a phone nor joined phones, which have a letter that spelling lacks."""
    phonetic = {one for symbol in table.symbols for one in symbol if not one.isascii() and one.isalpha()}
    words = canonical_phone(text).split()
    spelled = [word for word in words if word not in table and re.search(r"\w", word) and phonetic.isdisjoint(word)]
    return 2 * len(spelled) > len(words)


def _are_phones(text: str, table: SymbolTable) -> bool:
    """Whether most words are one or two phones, and some are in no language's alphabet: "sil", "ə"."""
    words = canonical_phone(_BRACES.sub(" ", text)).split()
    phonetic = any(word in SILENCES or "IPA" in map(script_of, word) for word in words)
    n_phones = sum(word in table or (len(word) == 2 and word[0] in table) for word in words)
    return len(words) > 2 and phonetic and n_phones > 0.7 * len(words)


def describe_unread(unread: Counter[str], *, text: str, config: TextConfig, where: str) -> str:
    """Describe, in one line, the characters that the voice can't read."""
    scripts = list(dict.fromkeys(filter(None, map(script_of, unread))))
    of_script = f"{' and '.join(scripts)} " if scripts else ""
    advice = "write it in words"
    if scripts and config.g2p_language.startswith("ja"):
        advice = "write it in kana"
    elif scripts:
        advice = "write phones in curly braces, and text in the voice's language (--g2p-language in training)"
    reader = " ".join(config.cleaners) or f"eSpeak NG's {config.g2p_language}"
    what = f"{of_script}{first_few([*map(name_symbol, unread)])} cannot be read by {reader}{at(where)}"
    return f"{quote(text, around=next(iter(unread)))}: {what}; {advice}, or use --unknown-symbols drop"


def describe_unknown(unknown: Counter[str], *, text: str, reading: str, table: SymbolTable, where: str) -> str:
    """Describe, in one line, symbols outside the set, with the text's reading if they occur only there."""
    symbols = [symbol.removeprefix("@") if len(symbol) > 1 else symbol for symbol in unknown]
    typed = all(symbol in text or symbol in canonical_phone(text) for symbol in symbols)
    of_reading = "" if typed else f" of the reading {quote(reading, around=symbols[0])}"
    what = f"{first_few([*map(name_symbol, symbols)])}{of_reading} not in symbol set {table.name}"
    other = "another --symbol-set" if table.phones else "other --text-cleaners"
    return f"{quote(text, around=symbols[0])}: {what}{at(where)}; use --unknown-symbols drop or {other}"
