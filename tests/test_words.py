"""The words of a text and the symbols that say them, and symbols that are those of the text without words."""

import re
from pathlib import Path

import pytest

from common.config import TextConfig
from common.errors import InputError
from common.text import EncodedText, TextFrontEnd, utterance_draws
from common.text.ssml import Span

V3 = "english_cleaners_v3"
FRONT_ENDS = {
    "v3": TextConfig(cleaners=(V3,)),
    "v1": TextConfig(symbol_set="english_expanded", cleaners=("english_cleaners",)),
    "v2": TextConfig(symbol_set="english_expanded", cleaners=("english_cleaners_v2",)),
    "v2_1_1": TextConfig(symbol_set="english_expanded", cleaners=("english_cleaners_v2_1_1",), append_space=True),
    "basic": TextConfig(symbol_set="english_expanded", cleaners=("basic_cleaners",)),
    "raw": TextConfig(symbol_set="english_expanded", cleaners=(), prepend_space=True),
    "arpabet": TextConfig(cleaners=(V3,), p_arpabet=1.0),
    "mixed": TextConfig(cleaners=(V3,), p_arpabet=0.5, prepend_space=True),
    "english": TextConfig("phone", "ipa_marked", (V3,), g2p="espeak"),
    "plain": TextConfig("phone", "ipa", (V3,), g2p="espeak"),
    "british": TextConfig("phone", "ipa_marked", (), g2p="espeak", g2p_language="en-gb"),
    "german": TextConfig("phone", "ipa_marked", (), g2p="espeak", g2p_language="de"),
    "french": TextConfig("phone", "ipa_marked", (), g2p="espeak", g2p_language="fr-fr"),
}
CASES = [
    line.split("\t")[0]
    for line in (Path(__file__).parent / "text_cases" / "english_v3.tsv").read_text(encoding="utf-8").splitlines()
    if line and line[0] != "#"
]
TEXTS = [
    'Dr. Smith paid $3.50, and 1,000 "men" (all old) left; why? No... the end — of it!',
    "It's a well-known B2B deal, isn't it: 5 pm - or 5 + 3?",
    "I would have been in the house of a friend, for an hour.",
    "  spaces \t everywhere\n and – dashes -- too … ",
    "U. S. A. and A.B.C. at 20°C on 3/4/2021",
    "C'est l'homme, à Paris: où est-il? Les amis sont ici.",
    "Ja, über 1000 Äpfel, ähnlich: Öl.",
    "one,two;three/four hello,world",
    "- a -",
    "{x} y}{ z",
]
BRACES = {"phone": "A {k æ t}, un{l iː v}able ({æ}).", "char": "A {K AE1 T}, re {L IY1 V}able."}


def encode(kind: str, text: str, **options) -> tuple[EncodedText, TextFrontEnd]:
    front_end = TextFrontEnd(FRONT_ENDS[kind], **options)
    return front_end.encode_words([Span(text)]), front_end


def said(kind: str, text: str) -> list[tuple[str, str]]:
    """Each word with the symbols that say it."""
    encoded, front_end = encode(kind, text)
    read = [(word.text, front_end.decode(list(encoded.ids[word.start : word.end]))) for word in encoded.words]
    return [(text, symbols.replace(" ", "") if front_end.config.g2p else symbols) for text, symbols in read]


def check(encoded: EncodedText, front_end: TextFrontEnd, text: str) -> None:
    """Words are in order, not empty, do not overlap, and hold every symbol that is said."""
    end = 0
    for word in encoded.words:
        assert end <= word.start < word.end <= len(encoded.ids), (text, word)
        assert word.text.strip(), text
        end = word.end
    inside = {place for word in encoded.words for place in range(word.start, word.end)}
    outside = {front_end.symbols[index] for place, index in enumerate(encoded.ids) if place not in inside}
    assert outside <= {"sil", "sp", "spn", "#", *"'\".,;:!?()[]-—…_ "}, (text, outside)


@pytest.mark.parametrize("kind", FRONT_ENDS)
def test_the_ids_are_those_of_the_text_and_every_symbol_that_is_said_is_in_one_word(kind: str) -> None:
    front_end = TextFrontEnd(FRONT_ENDS[kind], unknown_symbols="drop")
    compared = 0
    for index, text in enumerate([*TEXTS, *CASES, BRACES[front_end.config.input_type]]):
        try:
            draw = utterance_draws(seed=1, epoch=0, index=index)
            expected = front_end.encode(text, draw=draw)
        except InputError as error:
            with pytest.raises(InputError, match=re.escape(str(error))):
                front_end.encode_words([Span(text)])
            continue
        encoded = front_end.encode_words([Span(text)], draw=utterance_draws(seed=1, epoch=0, index=index))
        assert list(encoded.ids) == expected, text
        check(encoded, front_end, text)
        compared += 1
    assert compared > 300
