"""A user lexicon: words and the phones that replace them before anything else reads the text."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from common.errors import InputError, check_choice, shown
from common.files import read_text
from common.text.config import TextConfig
from common.text.phone_alphabets import ALPHABETS, alphabet_of, phones_for_voice
from common.text.words import PUNCTUATION

_TOKEN = re.compile(r"\{[^}]*\}|[^\s{]+")
_WORD = re.compile(r"[\w.'&+@#$%]+")  # two words in "US-based" and "US,UK"; one in "3.5" and "R&D"
_APOSTROPHES = str.maketrans("’ʼ＇", "'''")
_COMMENT = re.compile(r"\s#")
_EXPECTED = "expected lines such as 'NVIDIA<tab>EH0 N V IH1 D IY0 AH0' or 'NVIDIA<tab>ɛnˈvɪdiə'"


@dataclass(frozen=True)
class Lexicon:
    """Words (in lower case, except "US", "iPad") and their phones as symbols: ``{"nvidia": ("EH0", "N")}``."""

    entries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def apply(self, text: str) -> str:
        """Return the text with known words as phones in curly braces; text in braces doesn't change."""
        return _TOKEN.sub(self._replaced, text) if self.entries else text

    def _replaced(self, match: re.Match) -> str:
        token = match[0]
        if token[0] == "{":
            return token
        said = self._in_braces(token) or _WORD.sub(lambda word: self._in_braces(word[0]) or word[0], token)
        return re.sub(r"(?<=.)\{", " {", said)  # published cleaners find braces only between spaces

    def _in_braces(self, token: str) -> str | None:
        """Return the token with its word as phones, or None; if "approx." is listed, its period belongs to the word."""
        core = token.strip(PUNCTUATION)
        before, after = token.split(core, 1) if core else ("", "")
        for word in (core + ".", core) if after[:1] == "." else (core,):
            compared = _compared(word)
            if phones := self.entries.get(compared) or self.entries.get(compared.lower()):
                return f"{before}{{{' '.join(phones)}}}{after[len(word) - len(core) :]}"
        return None


def _compared(word: str) -> str:
    return unicodedata.normalize("NFC", word).translate(_APOSTROPHES)


def read_lexicon(path: Path, config: TextConfig) -> Lexicon:
    """Read a voice's lexicon from lines ``word<tab>phones`` or ``word<tab>phones<tab>ipa``; raises InputError.

    Phones are IPA, or ARPAbet if all are capitals, unless the third column names the alphabet.
    """
    if config.input_type != "char" and config.g2p is None:
        raise InputError(f"{path}: the voice reads only phones, so there are no words to look up; add --g2p espeak")
    entries: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(read_text(path, kind="lexicon").split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"{path}:{number}"
        word, phones = _entry(line, config, where=where)
        if entries.setdefault(word, phones) != phones:
            raise InputError(f"{where}: {shown(word)} has different phones in an earlier line; keep one")
    if not entries:
        raise InputError(f"{path}: holds no words; {_EXPECTED}")
    return Lexicon(entries)


def _entry(line: str, config: TextConfig, *, where: str) -> tuple[str, tuple[str, ...]]:
    """Return a line's word as it is compared, and its phones as symbols of the voice."""
    written, *columns = [cell.strip() for cell in _COMMENT.split(line, maxsplit=1)[0].rstrip().split("\t")]
    word = _compared(written)
    core = word.strip(PUNCTUATION) + "." * word.endswith(".")
    if not 1 <= len(columns) <= 2 or not core.strip(".") or len(word.split()) != 1:
        raise InputError(f"{where}: {shown(line.strip())}: {_EXPECTED}")
    alphabet = columns[1] if len(columns) > 1 else alphabet_of(columns[0])
    check_choice(f"{where}: alphabet", alphabet, ALPHABETS)
    phones = tuple(phones_for_voice(columns[0], alphabet=alphabet, config=config, where=where))
    is_cased = core[1:] != core[1:].lower()  # capitals after the first letter distinguish "US" from "us"
    return core if is_cased else core.lower(), phones
