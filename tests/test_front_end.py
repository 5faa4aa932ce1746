"""Text becomes the symbols of a voice, in words: phones of its language, a lexicon, and what is left out."""

import pickle
import re
from dataclasses import replace
from pathlib import Path
from unicodedata import normalize

import pytest
from front_ends import FRONT_ENDS, say, spoken
from test_text_tables import rows

from common.errors import InputError
from common.text.arpabet import utterance_draws
from common.text.config import TextConfig
from common.text.espeak import Speaker
from common.text.front_end import TextFrontEnd
from common.text.lexicon import read_lexicon
from common.text.phone_alphabets import phones_for_voice
from common.text.ssml import Span
from common.text.symbols import canonical_phone
from common.text.words import EncodedText

GERMAN = "Der schöne Hund (groß) läuft: nein! Pferd, Zeit… „Ja“."
CODE_POINTS = FRONT_ENDS["code points"]


def reader(language: str = "de", symbol_set: str = "ipa_marked") -> TextFrontEnd:
    return TextFrontEnd(replace(spoken(language, symbol_set), cleaners=()))


def test_stress_length_and_punctuation_are_kept() -> None:
    wanted = (
        "sil d ɛ ɾ # ʃ ˈøː n ə # h ˈʊ n t sp ɡ ɾ ˈoː s sp l ˈɔø f t : n ˈaɪ n ! pf ˈeː ɾ t , ts ˈaɪ t … j ˈɑː . sil"
    )
    assert reader().clean(GERMAN) == wanted
    assert reader().decode(reader().encode(GERMAN)).replace(" ", "") == wanted.replace(" ", "")
    assert reader("cmn").clean("你好，世界。").count(" , ") == 1 and reader("cmn").clean("世界。").endswith(" . sil")


def test_the_set_of_code_points_keeps_espeaks_own_phones_with_a_boundary_after_each_mark() -> None:
    wanted = "d ɛ ɾ # ʃ ˈøː n ə # h ˈʊ n t # ɡ ɾ ˈoː s # l ˈɔø f t : # n ˈaɪ n ! # pf ˈeː ɾ t , # ts ˈaɪ t , # j ˈɑː ."
    assert reader("de", "espeak").clean(GERMAN) == f"sil {wanted} sil"
    english = reader("en-us", "espeak")
    assert english.clean("The church's roses, water,") == "sil ð ə # tʃ ˈɜː tʃ ɪ z # ɹ ˈoʊ z ᵻ z , # w ˈɔː ɾ ɚ , # sil"
    assert english.decode(english.encode("Church {t͡ ʃ}!")) == "sil t ʃ ˈ ɜ ː t ʃ # t ͡ ʃ ! sil"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en-us", 'Dr. Smith paid $3.50, and 1,000 "men" (all old) left; why? No... the end — of it!'),
        ("en-us", "He buttoned his cotton coat."),
        ("de", GERMAN),
        ("tr", "Merhaba dünya, çok güzel."),
    ],
)
def test_a_voice_reads_what_the_embedded_speaker_says(language: str, text: str) -> None:
    plain, marked = reader(language, "ipa"), reader(language, "espeak")
    assert plain.decode(plain.encode(text)).split() == Speaker(voice=language).phones(text)
    if "(" not in text:  # beside which the speaker hears no mark
        assert marked.decode(marked.encode(text)).split() == Speaker(voice=language, marked=True).phones(text)


def test_phones_in_curly_braces_stay() -> None:
    assert reader().clean("Nein {m ˈ y l ɐ}! Gut {x}?") == "sil n ˈaɪ n # m ˈ y l ɐ ! ɡ ˈuː t # x ? sil"
    english = TextFrontEnd(FRONT_ENDS["english"])
    assert english.clean("At 5 pm {k ˈ æ t}.") == reader("en-us").clean("at five p.m. {k ˈ æ t}.")
    reader("en-us").clean("{æ}")  # after which eSpeak NG's library reads phones
    assert say(reader(), "ein [[h'allo]] Wort") == say(reader(), "ein [ [h'allo]] Wort")


@pytest.mark.parametrize(
    ("language", "text", "wanted"),
    [
        ("de", "Grüße aus Köln", "ɡ ɾ ˈyː s ə # ˌaʊ s # k ˈœ l n"),
        ("fr-fr", "Les élèves ont été", "l e- z # e l ˈɛ v z # ˈɔ̃ t # e t ˈe"),
        ("ko", "모든 인간은", "m o d ˈɯ nˈi n q ɐ n ˌɯ n"),
        ("bn", "বাড়ি", "b ˈa r. i"),  # of which NFC makes two letters
        ("ru", "Мой ёжик, дверь", "m ˈo j # j ˈɵ ʒ y k , # d vʲ ˈe r ʲ"),
    ],
)
def test_letters_and_their_marks_are_read_as_one_however_they_are_encoded(
    language: str, text: str, wanted: str
) -> None:
    for form in ("NFC", "NFD"):
        cleaned = reader(language, "espeak").clean(normalize(form, text))
        assert cleaned == canonical_phone(f"sil {wanted} sil")


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("english", "Lead pipes. Lead the way.", "lˈɛd pˈaɪps.lˈiːd ðə wˈeɪ."),
        ("english", "Use the use. The dove dove.", "jˈuːz ðə jˈuːs ðə dˈʌv dˈoʊv."),
        ("english", "They object. We go.", "ðeɪ ɑːbd͡ʒˈɛkt wiː ɡˈoʊ."),
        ("arpabet", "Lead pipe.", "{L EH1 D} {P AY1 P}."),
        ("arpabet", "They lead.", "{DH EY1} lead."),
    ],
)
def test_heteronyms_are_said_as_their_context_asks(kind: str, text: str, said: str) -> None:
    assert say(TextFrontEnd(FRONT_ENDS[kind]), text) == said


def test_published_cleaners_and_lists_of_ones_own_leave_heteronyms_letters() -> None:
    for changes in ({"cleaners": ("english_cleaners",)}, {"heteronyms": "lead\n"}):
        assert say(TextFrontEnd(replace(FRONT_ENDS["arpabet"], **changes)), "Lead pipe.") == "lead {P AY1 P}."


@pytest.mark.parametrize(
    ("config", "text", "read", "n_dropped"),
    [
        (FRONT_ENDS["v3"], "Hi привет 😀 there.", "hi there.", 7),
        (FRONT_ENDS["v1"], "Hi привет 😀 there.", "hi privet there.", 7),
        (FRONT_ENDS["v1"], '"a" [b]', "a b", 4),
        *((spoken(tag, "espeak"), "da 😀 da👍🏽❤.", "da da.", 4) for tag in ("en-us", "de", "fr-fr", "cmn")),
        (spoken("ja", "espeak"), "今日は天気がいいですね。", "はがいいですね。", 4),
        (spoken("yue", "espeak"), "香港 で", "香港", 1),
        (spoken("ja", "espeak"), "すべての カメラ", "すべての カメラ", 0),
        (spoken("cmn", "espeak"), "今天天气很好", "今天天气很好", 0),
        (spoken("uk", "espeak"), "Привіт, hello", "Привіт, hello", 0),
        (spoken("az", "espeak"), "mən səni sevirəm", "mən səni sevirəm", 0),
    ],
)
def test_what_a_voice_cannot_read_is_left_out_and_counted(
    config: TextConfig, text: str, read: str, n_dropped: int, capsys: pytest.CaptureFixture
) -> None:
    front_end = TextFrontEnd(config, unknown_symbols="drop")
    encoded = front_end.encode_words([Span(text)])
    said = front_end.decode(list(encoded.ids)).replace("  ", " ")
    assert said == (front_end.decode(front_end.encode(read)) if config.g2p else read)
    assert encoded.dropped.total() == n_dropped
    front_end.warn_dropped(encoded.dropped, where="list.txt")
    assert (f"warning: list.txt: {n_dropped} characters that" in capsys.readouterr().err) == (n_dropped > 1)


def test_latin_text_is_never_refused_by_cleaners_and_comparisons_are_text() -> None:
    text = "A café in Straße 5, “hello,” said Łukasz… £3 ﬁne Ａ Ⅳ ① ½ ª º µ naïve\u0301 soft\u00adhyphen \ufeffmark"
    for kind in ("v3", "v1", "v2"):
        front_end = TextFrontEnd(FRONT_ENDS[kind], unknown_symbols="drop")
        assert all(symbol.isascii() for symbol in front_end.encode_words([Span(text)]).dropped)
    for text in ("a < b and c > d", "x<3", "if a<b and c>d", "<3 you", "AT&T; R&D", "5 <6 & 7> 3"):
        assert TextFrontEnd(FRONT_ENDS["v3"]).encode(text) and TextFrontEnd(FRONT_ENDS["german"]).encode(text)


@pytest.mark.parametrize("kind", ["v3", "basic", "german"])
def test_what_is_too_long_for_an_utterance_or_a_word_is_refused(kind: str) -> None:
    for text, wanted in (("two " * 5001, "20004 .* 20000 in an utter"), ("I" * 1001, "1001 .* 1000 between spaces")):
        with pytest.raises(InputError, match=rf"^'.*\.\.\.': {wanted}.* \(list\.txt:3\)$"):
            TextFrontEnd(FRONT_ENDS[kind]).encode(text, where="list.txt:3")


LEXICON = (
    "# our words\n\nNVIDIA\tEH0 N V IH1 D IY0 AH0\nUS\tY UW1 EH1 S\tarpabet\nTomato\tT AH0 M AA1 T OW0 # British\n"
    "approx.\tAH0 P R AA1 K S\nR&D\tAA1 R AH0 N D IY1\n"
)


@pytest.fixture
def lexicon(tmp_path: Path) -> Path:
    path = tmp_path / "words.tsv"
    path.write_text(LEXICON, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("v3", "Buy NVIDIA, TOMATO! R&D", "buy {EH0 N V IH1 D IY0 AH0}, {T AH0 M AA1 T OW0}! {AA1 R AH0 N D IY1}"),
        ("v1", "US told us approx. {K AE1 T}", "{Y UW1 EH1 S} told us {AH0 P R AA1 K S} {K AE1 T}"),
        ("english", "Tomato, tomato!", "təmˈɑːtoʊ,təmˈɑːtoʊ!"),
        ("plain", "tomato", "təmɑtoʊ"),
        ("german", "Tomato", "təmˈɑːtoʊ"),
    ],
)
def test_words_of_a_lexicon_are_said_by_its_phones(lexicon: Path, kind: str, text: str, said: str) -> None:
    front_end = TextFrontEnd(FRONT_ENDS[kind], lexicon=read_lexicon(lexicon, FRONT_ENDS[kind]))
    assert say(front_end, text) == said
    assert pickle.loads(pickle.dumps(front_end)).encode(text) == front_end.encode(text)  # in other processes


def test_ipa_of_a_lexicon_is_for_voices_of_ipa(lexicon: Path) -> None:
    lexicon.write_text("tomato\ttəˈmɑːtoʊ\n", encoding="utf-8")
    assert say(TextFrontEnd(CODE_POINTS, lexicon=read_lexicon(lexicon, CODE_POINTS)), "tomato") == "təmˈɑːtoʊ"
    with pytest.raises(InputError, match=r"words\.tsv: the voice reads only phones.*--g2p espeak"):
        read_lexicon(lexicon, FRONT_ENDS["phones"])
    with pytest.raises(InputError, match="the voice reads phones of xsampa"):
        phones_for_voice("K AE1 T", alphabet="arpabet", config=TextConfig("phone", "xsampa", ()))


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


@pytest.mark.parametrize("kind", [kind for kind in FRONT_ENDS if kind != "phones"])
def test_every_symbol_that_is_said_is_in_one_word(kind: str) -> None:
    front_end = TextFrontEnd(FRONT_ENDS[kind], unknown_symbols="drop")
    phrases = [phrase for phrase, _ in rows("english_v3.tsv")][::2]
    compared = 0
    for index, text in enumerate([*TEXTS, *phrases, BRACES[front_end.config.input_type]]):
        draw = utterance_draws(seed=1, epoch=0, index=index)
        try:
            encoded = front_end.encode_words([Span(text)], draw=draw)
        except InputError as error:
            assert re.search("looks like phones|empty transcript|is markup", str(error))
            continue
        cleaned, _ = front_end.read(text)  # as a training does
        again = front_end.encode_cleaned(cleaned, draw=utterance_draws(seed=1, epoch=0, index=index))[0]
        assert list(encoded.ids) == again, text
        check(encoded, front_end, text)
        compared += 1
    assert compared > 145


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
    ("kind", "alphabet", "written", "phones"),
    [
        ("v3", "arpabet", "T AH0 M AA1 T OW0", "{T AH0 M AA1 T OW0}"),
        ("v1", "arpabet", "T AH0 M AA1 T OW0", "{T AH0 M AA1 T OW0}"),
        ("german", "ipa", "təˈmɑːtoʊ", "təmˈɑːtoʊ"),
        ("plain", "ipa", "təˈmɑːtoʊ", "təmɑtoʊ"),
        ("code points", "arpabet", "T AH0 M AA1 T OW0", "təmˈɑːtoʊ"),
    ],
)
def test_phones_of_a_span_are_what_the_voice_reads(kind: str, alphabet: str, written: str, phones: str) -> None:
    front_end = TextFrontEnd(FRONT_ENDS[kind])
    encoded = front_end.encode_words([Span("Red ("), Span(written, source="tomato", alphabet=alphabet), Span(")!")])
    assert [(word.text, word.span) for word in encoded.words] == [("Red", 0), ("tomato", 1)]
    symbols = front_end.decode(list(encoded.ids[encoded.words[1].start : encoded.words[1].end]))
    assert (symbols.replace(" ", "") if front_end.config.g2p else symbols) == phones
    check(encoded, front_end, kind)


@pytest.mark.parametrize(
    ("kind", "phones", "alphabet", "message"),
    [
        ("v3", "tøm", "ipa", r"'tøm' \(list\.txt:2\): ipa is not converted, but the voice reads ARPAbet"),
        ("english", "t%m", "ipa", r"'%' \(U\+0025\) is not a phone of symbol set ipa_marked"),
        ("english", "T QQ", "arpabet", "'QQ' is not an ARPAbet phone"),
        ("v3", "T", "xsampa", "alphabet of phones 'xsampa': expected one of ipa, arpabet"),
    ],
)
def test_phones_that_a_voice_does_not_read_are_named(kind: str, phones: str, alphabet: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TextFrontEnd(FRONT_ENDS[kind]).encode_words([Span(phones, alphabet=alphabet)], where="list.txt:2")
