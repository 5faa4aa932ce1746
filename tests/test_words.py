"""The words of a text and the symbols that say them, and symbols that are those of the text without words."""

import re
from pathlib import Path

import pytest

from common.errors import InputError
from common.text.arpabet import utterance_draws
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.text.ssml import Span
from common.text.words import EncodedText, align

V3 = "english_cleaners_v3"
FRONT_ENDS = {
    "v3": TextConfig(cleaners=(V3,)),
    "v1": TextConfig(symbol_set="english_expanded", cleaners=("english_cleaners",)),
    "v2": TextConfig(symbol_set="english_expanded", cleaners=("english_cleaners_v2",)),
    "v2_1_1": TextConfig(symbol_set="english_expanded", cleaners=("english_cleaners_v2_1_1",), append_space=True),
    "tacotron2": TextConfig(symbol_set="english_expanded", cleaners=("english_cleaners_tacotron2",)),
    "basic": TextConfig(symbol_set="english_expanded", cleaners=("basic_cleaners",)),
    "raw": TextConfig(symbol_set="english_expanded", cleaners=(), prepend_space=True),
    "arpabet": TextConfig(cleaners=(V3,), p_arpabet=1.0),
    "mixed": TextConfig(cleaners=(V3,), p_arpabet=0.5, prepend_space=True),
    "english": TextConfig("phone", "ipa_marked", (V3,), g2p="espeak"),
    "code points": TextConfig("phone", "espeak", (V3,), g2p="espeak"),
    "plain": TextConfig("phone", "ipa", (V3,), g2p="espeak"),
    "german": TextConfig("phone", "ipa_marked", (), g2p="espeak", g2p_language="de"),
    "french": TextConfig("phone", "espeak", (), g2p="espeak", g2p_language="fr-fr"),
}
CASES_FOLDER = Path(__file__).parent / "text_cases"
CASES = [line.split("\t")[0] for line in (CASES_FOLDER / "english_v3.tsv").read_text(encoding="utf-8").splitlines()]
TEXTS = [
    'Dr. Smith paid $3.50, and 1,000 "men" (all old) left; why? No... the end — of it!',
    "It's a well-known B2B deal, isn't it: 5 pm - or 5 + 3?",
    "I would have been in the house of a friend, for an hour.",
    "  spaces \t everywhere\n and – dashes -- too … ",
    "U. S. A. and A.B.C. at 20°C on 3/4/2021",
    "C'est l'homme, à Paris: où est-il? Les amis sont ici.",
    "Ja, über 1000 Äpfel, ähnlich: Öl.",
    "- a -",
    "{x} y}{ z",
]
BRACES = {"phone": "A {k æ t}, un{l iː v}able ({æ}).", "char": "A {K AE1 T}, re {L IY1 V}able."}


def check(encoded: EncodedText, front_end: TextFrontEnd, text: str) -> None:
    """Words are in order, not empty, do not overlap, and hold every symbol that is said."""
    bounds = [place for word in encoded.words for place in (word.start, word.end)]
    assert bounds == sorted(bounds) and all(word.text.strip() and word.start < word.end for word in encoded.words), text
    inside = {place for word in encoded.words for place in range(word.start, word.end)}
    outside = {front_end.symbols[index] for place, index in enumerate(encoded.ids) if place not in inside}
    assert outside <= {"sil", "sp", "spn", "#", *"'\".,;:!?()[]-—…_ "}, (text, outside)


@pytest.mark.parametrize("kind", FRONT_ENDS)
def test_the_ids_are_those_of_the_text_and_every_symbol_that_is_said_is_in_one_word(kind: str) -> None:
    front_end = TextFrontEnd(FRONT_ENDS[kind], unknown_symbols="drop")
    compared = 0
    for index, text in enumerate([*TEXTS, *CASES[::2], BRACES[front_end.config.input_type]]):
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
    assert compared > 145


@pytest.mark.parametrize("line", (CASES_FOLDER / "words.tsv").read_text(encoding="utf-8").splitlines()[1:])
def test_words_have_the_symbols_of_what_is_read_of_them(line: str) -> None:
    kind, text, *expected = line.split("\t")
    front_end = TextFrontEnd(FRONT_ENDS[kind])
    encoded = front_end.encode_words([Span(text)])
    for word, wanted in zip(encoded.words, expected):
        symbols = front_end.decode(list(encoded.ids[word.start : word.end]))
        assert f"{word.text}={symbols.replace(' ', '') if front_end.config.g2p else symbols}" == wanted


# As eSpeak NG says them within a sentence, where it says them otherwise alone.
WEAK = (
    "a ɐ/ə, an ən/ɐn, at ɐt, for fəɹ, has hɐz, have hɐv, of əv, that ðɐɾ, the ðɪ, to tə/tʊ, it ɪɾ, were wɜɹ,"
    " many mɛnɪ, mrs mɪsəs, no nʌmbəɹ"
)


def test_words_of_sentences_have_the_phones_that_they_have_alone() -> None:
    def plain(symbols: list[int]) -> str:
        said = re.sub(r"[ #ˈˌː.,;:!?…—]|sil", "", front_end.decode(symbols))
        return said.replace("ɹɹ", "ɹ")  # one of which links it to a vowel

    front_end = TextFrontEnd(FRONT_ENDS["english"])
    weak = dict(map(str.split, WEAK.split(", ")))
    n_words = n_equal = 0
    for sentence in (CASES_FOLDER / "words.txt").read_text().splitlines():
        encoded = front_end.encode_words([Span(sentence)])
        assert len(encoded.words) == sum(any(map(str.isalnum, word)) for word in sentence.split()), sentence
        for word in encoded.words:
            if not re.fullmatch(r"[A-Za-z]+(?:['-][A-Za-z]+)*'?", word.text):
                continue
            phones = plain(list(encoded.ids[word.start : word.end]))
            alone = plain(front_end.encode(word.text))
            n_words += 1
            n_equal += phones in (alone, *weak.get(word.text.lower(), "").split("/"))
    assert n_words > 200
    assert n_equal / n_words >= 0.95


@pytest.mark.parametrize("kind", ["v3", "v1", "english", "arpabet"])
def test_a_span_with_a_source_is_one_word_and_a_word_across_spans_is_of_the_one_in_which_it_begins(kind: str) -> None:
    front_end = TextFrontEnd(FRONT_ENDS[kind], unknown_symbols="drop")
    spans = [Span("The "), Span("World Wide Web", source="WWW"), Span("'s ("), Span("F B I", source="FBI"), Span(").")]
    encoded = front_end.encode_words(spans)
    assert list(encoded.ids) == front_end.encode("The World Wide Web's (F B I).")
    assert [(word.text, word.span) for word in encoded.words] == [("The", 0), ("WWW's", 1), ("FBI", 3)]
    check(encoded, front_end, kind)
    spans = [Span("It is un"), Span("believ"), Span("able, "), Span('"so'), Span('" '), Span(" it is.")]
    words = [(word.text, word.span) for word in front_end.encode_words(spans).words]
    assert words == [("It", 0), ("is", 0), ("unbelievable", 0), ("so", 3), ("it", 5), ("is", 5)]


@pytest.mark.parametrize(
    ("kind", "phones"),
    [
        ("v3", "{T AH0 M AA1 T OW0}"),
        ("v1", "{T AH0 M AA1 T OW0}"),
        ("german", "təmˈɑːtoʊ"),
        ("plain", "təmɑtoʊ"),
        ("code points", "təmˈɑːtoʊ"),
    ],
)
def test_phones_of_both_alphabets_are_what_the_voice_reads(kind: str, phones: str) -> None:
    front_end = TextFrontEnd(FRONT_ENDS[kind])
    for alphabet, written in (("ipa", "təˈmɑːtoʊ"), ("arpabet", "T AH0 M AA1 T OW0")):
        spans = [Span("Red ("), Span(written, source="tomato", alphabet=alphabet), Span(")!")]
        encoded = front_end.encode_words(spans)
        assert [(word.text, word.span) for word in encoded.words] == [("Red", 0), ("tomato", 1)]
        word = encoded.words[1]
        symbols = front_end.decode(list(encoded.ids[word.start : word.end]))
        assert (symbols.replace(" ", "") if front_end.config.g2p else symbols) == phones
        check(encoded, front_end, kind)
        assert "exclamation" not in front_end.decode(list(encoded.ids))


def test_phones_that_a_voice_does_not_read_are_named() -> None:
    for kind, phones, alphabet, message in (
        ("v3", "tøm", "ipa", "'tøm' (list.txt:2): 'ø' (U+00F8) is no phone of ARPAbet, which the voice reads"),
        ("english", "t%m", "ipa", "'%' (U+0025) is no phone of symbol set ipa_marked"),
        ("english", "T QQ", "arpabet", "'QQ' is no phone of ARPAbet"),
        ("v3", "T", "xsampa", "alphabet of phones 'xsampa': expected one of ipa, arpabet"),
    ):
        with pytest.raises(InputError) as error:
            TextFrontEnd(FRONT_ENDS[kind]).encode_words([Span(phones, alphabet=alphabet)], where="list.txt:2")
        assert message in str(error.value)


@pytest.mark.parametrize(
    ("symbol_set", "text", "words"),
    [
        ("ipa_marked", "sil h ə l ˈoʊ # w ɜː l d , ɡ ʊ d . sil", ["h ə l ˈoʊ", "w ɜː l d", "ɡ ʊ d"]),
        ("ipa_marked", "həlˈoʊ ə wɜːld", ["həlˈoʊ", "ə", "wɜːld"]),
        ("espeak", "sil h ə l ˈ oʊ # w ɜː l d , # ɡ ʊ d . sil", ["h ə l ˈ oʊ", "w ɜː l d", "ɡ ʊ d"]),
        ("ipa", "sil h ə l oʊ sp k æ t sil", ["h ə l oʊ", "k æ t"]),
        ("arpabet", "sil HH AH0 L OW1 sp K AE1 T", ["HH AH0 L OW1", "K AE1 T"]),
        ("xsampa", "h @ l @U", ["h @ l @U"]),
    ],
)
def test_words_of_phones_end_at_boundaries(symbol_set: str, text: str, words: list[str]) -> None:
    front_end = TextFrontEnd(TextConfig("phone", symbol_set, ()))
    encoded = front_end.encode_words([Span(text)])
    assert list(encoded.ids) == front_end.encode(text)
    assert [word.text for word in encoded.words] == words
    check(encoded, front_end, text)
    if symbol_set != "xsampa":
        spans = [Span(text), Span("K AE1 T", source="cat", alphabet="arpabet")]
        assert front_end.encode_words(spans).words[-1].text == "cat"


@pytest.mark.parametrize(
    ("alone", "said", "owners"),
    [
        ("of|the|cat", "ofthe cat", [(0, 1), (2, 2)]),
        ("five pounds|million|today", "five million pounds today", [(0, 0), (1, 1), (1, 1), (2, 2)]),
        ("one||six", "one to six", [(0, 0), (1, 1), (2, 2)]),
        ("alpha|beta|gamma", "alpha gamma", [(0, 1), (2, 2)]),
        ("one|two", "x", [(0, 1)]),
        ("one", "a b c d e f g h i j k l m n o p", [(0, 0)] * 16),
        ("", "a b", [(0, 0)] * 2),
        ("one|two", "", []),
    ],
)
def test_what_is_said_belongs_to_words_in_order(alone: str, said: str, owners: list[tuple[int, int]]) -> None:
    assert align([word.split() for word in alone.split("|")], said.split()) == owners
