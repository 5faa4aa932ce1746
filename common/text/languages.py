"""Guess the language of texts by frequent words, and find lists that would be read in another language."""

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

from common.errors import InputError, shown
from common.text.config import TextConfig
from common.text.normalization.english.characters import is_phonetic, script_of
from common.text.tables import word_set, word_table

_WORDS = {tag: frozenset(words.split()) for tag, words in word_table("languages").items()}
_LOAN_WORDS = word_set("loan_words")
_WORD = re.compile(r"[^\W\d_]+")
_BRACES = re.compile(r"\{[^}]*\}")  # around phones
_MARKS = frozenset("ˈˌː")
_LEAST_WORDS = 3  # of a language, to recognize it


def guess_language(texts: Iterable[str], *, expected: str = "en") -> str:
    """Return eSpeak NG's tag for the texts' language, "" unless it has twice as many words as its rivals."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(_evidence(text))
    hits = {tag: sum(counts[word] for word in words & counts.keys()) for tag, words in _WORDS.items()}
    best = max(hits, key=lambda tag: hits[tag])
    rivals = [number for tag, number in hits.items() if tag != best and expected in (best, tag)]
    return best if hits[best] >= max([_LEAST_WORDS, *(2 * number for number in rivals)]) else ""


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", _BRACES.sub(" ", text)))


def is_ipa(text: str) -> bool:
    """Whether at least half of a text's words have letters or marks of the phonetic alphabet."""
    words = [] if text.isascii() else [word for word in _words(text) if len(word) > 1]
    phonetic = [word for word in words if any(one in _MARKS or is_phonetic(one) for one in word)]
    return bool(phonetic) and 2 * len(phonetic) >= len(words)


def _evidence(text: str) -> list[str]:
    """Return a text's words in lower case, and each word's scripts other than Latin in capitals."""
    words = [word.lower() for word in _words(text)]
    scripts = (script.upper() for word in words if not word.isascii() for script in set(map(script_of, word)))
    return [*words, *scripts]


def language_of(config: TextConfig) -> str:
    """Return the language that a front end reads, without region; empty if its cleaners have none."""
    if config.g2p is not None:
        return config.g2p_language.partition("-")[0]
    return "en" if any(name.startswith("english") for name in config.cleaners) else ""


def refuse_rewritten_letters(texts: Mapping[str, str], config: TextConfig) -> None:
    """Raise InputError if English cleaners would rewrite letters in texts (by list line) that aren't English."""
    if line := _describe_rewritten(texts, config, found=guess_language(texts.values(), expected=language_of(config))):
        raise InputError(line)


def warn_of_language(texts: Mapping[str, str], config: TextConfig) -> None:
    """Warn on stderr of texts (by list line) in another language than the front end reads."""
    language = language_of(config)
    found = guess_language(texts.values(), expected=language)
    if line := _describe_rewritten(texts, config, found=found):
        print(f"warning: {line}", file=sys.stderr)
    elif found and found != language and language in _WORDS:
        path = next(iter(texts)).rpartition(":")[0]
        what = f"looks like language {found}, but is read as {language}"
        print(f"warning: {path}: {what}; {_how_to_set(found)}", file=sys.stderr)


def _how_to_set(found: str) -> str:
    tag = TextConfig.g2p_language if found == "en" else found or "<tag of eSpeak NG>"
    return f"set LANGUAGE={tag} (train.py: --g2p-language)"


def _describe_rewritten(texts: Mapping[str, str], config: TextConfig, *, found: str) -> str:
    """Describe the first word in language ``found`` that English cleaners would rewrite, and what to do; or ""."""
    is_cleaned = any(name.startswith("english") for name in config.cleaners)
    if found == language_of(config) or not is_cleaned or (rewritten := rewritten_letter(texts)) is None:
        return ""
    where, word, letter = rewritten
    what = f"{where}: {shown(word)} has {letter!r}, which {' '.join(config.cleaners)} would rewrite"
    return f"{what}; {f'for language {found} ' * bool(found)}{_how_to_set(found)}, or other TEXT_CLEANERS"


def rewritten_letter(texts: Mapping[str, str]) -> tuple[str, str, str] | None:
    """Find the first word with a letter that English lacks: its list line, the word, and the letter."""
    for where, text in texts.items():
        for word in () if text.isascii() or is_ipa(text) else _words(text):
            letter = next((one for one in word if not one.isascii() and script_of(one) != "IPA"), None)
            if letter is not None and len(word) > 1 and word.lower() not in _LOAN_WORDS:  # "π" alone is a sign
                return where, word, letter
    return None
