"""english_cleaners_v3 reads any text as words that are read as themselves. Readings stand in text_cases."""

import random
import re
from pathlib import Path

from test_text_tables import rows

from common.text.normalization.english.english import read_english

_ARPABET = re.compile(r"\{[A-Z0-9 ]+\}")
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyz-!'(),.:;? ")
PHRASES = [phrase for phrase, _ in rows("english_v3.tsv")]


def random_texts(seed: int, count: int) -> list[str]:
    """Words of the table in any order, strings of the signs that rules look at, and any Unicode."""
    generator = random.Random(seed)
    words = [word for phrase in PHRASES for word in phrase.split()]
    signs = "0123456789.,$£€% xmbstndrIVXAB:-'\"/ap#&@+=<>()°~^*_{}St.Dr No"
    texts = []
    for _ in range(count // 3):
        texts.append(" ".join(generator.choices(words, k=generator.randrange(1, 9))))
        texts.append("".join(generator.choices(signs, k=generator.randrange(1, 40))))
        points = [generator.randrange(0xD800) for _ in range(generator.randrange(1, 12))]
        texts.append("".join(map(chr, points)) + "".join(generator.choices(signs, k=8)) + "\U0001f600\ud800")
    return texts


def test_any_text_gives_only_lower_case_letters_and_marks_which_are_read_as_themselves() -> None:
    for text in PHRASES + random_texts(1, 2000):
        once = read_english(text)
        assert set(_ARPABET.sub("", once)) <= _LEGAL, text
        assert read_english(once) == once, text


def test_curly_brace_arpabet_stays_verbatim_and_other_braces_go() -> None:
    assert read_english("{HH AH0 L OW1}, Dr. {R IY1 D}!") == "{HH AH0 L OW1}, doctor {R IY1 D}!"
    assert read_english("{hello} {HH QQ} {}") == "hello h.h. q.q."


def test_real_transcripts_keep_their_words(shared_data: Path) -> None:
    """Ours are those of LJSpeech's normalized transcripts, which keep some abbreviations (i.e., e.g., etc., MSS.)."""
    lines = (shared_data / "LJSpeech-sample" / "metadata.csv").read_text(encoding="utf-8").splitlines()
    differing = 0
    for line in lines:
        _, raw, normalized = line.split("|")
        words = [re.sub(r"[^a-z' ]", " ", text.lower()).split() for text in (read_english(raw), normalized)]
        if words[0] != words[1]:
            assert re.search(r"\b(?:i\.e|e\.g|etc|MSS)\.", normalized), line
            differing += 1
    assert len(lines) == 80 and differing <= 4
