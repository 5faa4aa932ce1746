"""Text that would not be said as it is written is refused in one line that quotes it, or counted and dropped."""

import pytest

from common.errors import InputError
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.text.ssml import Span

V3 = "english_cleaners_v3"
FRONT_ENDS = {
    "v3": TextConfig(cleaners=(V3,)),
    "v1": TextConfig(cleaners=("english_cleaners",)),
    "v2": TextConfig(cleaners=("english_cleaners_v2",)),
    "tacotron2": TextConfig(cleaners=("english_cleaners_tacotron2",)),
    "basic": TextConfig(symbol_set="english_expanded", cleaners=("basic_cleaners",)),
    "g2p": TextConfig("phone", "ipa_marked", (V3,), g2p="espeak"),
    "german": TextConfig("phone", "ipa_marked", (), g2p="espeak", g2p_language="de"),
}
ENGLISH = ("v3", "v1", "v2", "tacotron2", "g2p")
MARKUP = (
    *("Wait <break/> here.", 'Wait <break time="500ms"/> here.', "<prosody rate='slow'>x</prosody>", "The end.</s>"),
    *("<p>Hello", "A line<br>and", "<mstts:express-as style=sad>x", "<script async>x", "<!-- x --> y", "x &lt;s&gt; y"),
)


@pytest.mark.parametrize("kind", FRONT_ENDS)
def test_markup_is_never_read_aloud(kind: str) -> None:
    for text in MARKUP:
        with pytest.raises(InputError, match=r"^[^\n]*is markup, which is not supported \(list\.txt:3\)[^\n]*$"):
            TextFrontEnd(FRONT_ENDS[kind], unknown_symbols="drop").encode(text, where="list.txt:3")


@pytest.mark.parametrize("text", ["a < b and c > d", "x<3", "if a<b and c>d", "<3 you", "AT&T; R&D", "5 <6 & 7> 3"])
def test_comparisons_are_text(text: str) -> None:
    for kind in ("v3", "g2p", "german"):
        assert TextFrontEnd(FRONT_ENDS[kind]).encode(text)


@pytest.mark.parametrize(
    ("text", "named", "advice"),
    [
        ("Say مرحبا now", "Arabic 'م' (U+0645)", "--g2p-language"),
        ("北京 is big", "Chinese '北' (U+5317)", "--g2p-language"),
        ("I love it 😀!", "'😀' (U+1F600)", "in words"),
        ("Say həˈloʊ now", "IPA 'ə' (U+0259)", "phones"),
    ],
)
def test_what_english_cleaners_would_lose_is_named(text: str, named: str, advice: str) -> None:
    for kind in ENGLISH:
        with pytest.raises(InputError) as error:
            TextFrontEnd(FRONT_ENDS[kind]).encode(text, where="a.tsv:2")
        message = str(error.value)
        for part in (repr(text), named, "cannot be read by english_cleaners", "(a.tsv:2)", advice, "drop"):
            assert part in message
        assert "\n" not in message


def test_what_cleaners_would_lose_is_dropped_and_counted(capsys: pytest.CaptureFixture) -> None:
    for kind, done, read in (
        ("v3", "left out", "hi there."),
        ("v1", "left out or written in Latin", "hi privet there."),
    ):
        front_end = TextFrontEnd(FRONT_ENDS[kind], unknown_symbols="drop")
        encoded = front_end.encode_words([Span("Hi привет 😀 there.")])
        ids, dropped = list(encoded.ids), encoded.dropped
        assert front_end.decode(ids).replace("  ", " ") == read
        front_end.warn_dropped(dropped)
        assert f"7 characters that this voice has no symbol for were {done}: 'п' (1)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("language", "text", "named"),
    [
        ("ja", "今日は天気がいいですね。", 4),
        ("ko", "漢字 한국", 2),
        ("yue", "香港 で", 1),
        ("de", "Er sagt Привет, שלום und ʃ zu α", 11),
        ("ja", "すべての カメラ", 0),
        ("cmn", "今天天气很好", 0),
        ("uk", "Привіт, hello", 0),
        ("az", "mən səni sevirəm", 0),
    ],
)
def test_letters_that_espeak_would_say_the_names_of_are_refused_or_left_out(
    language: str, text: str, named: int
) -> None:
    config = TextConfig("phone", "espeak", (), g2p="espeak", g2p_language=language)
    front_end = TextFrontEnd(config, unknown_symbols="drop")
    encoded = front_end.encode_words([Span(text)])
    ids, dropped = list(encoded.ids), encoded.dropped
    assert ids and dropped.total() == named
    if named:
        with pytest.raises(InputError, match=rf"^'.*U\+.* {language}.*\(a\.tsv:2\).*$"):
            TextFrontEnd(config).encode(text, where="a.tsv:2")


@pytest.mark.parametrize("kind", ["g2p", "german"])
def test_words_in_ipa_are_not_read_as_spelling(kind: str) -> None:
    for text in ("taɪp kæst fɹʌm hɪz", "wɜ bæd", "həlˈoʊ", "ðə faʊnts"):
        with pytest.raises(InputError, match=r"looks like phones.*a\.tsv:2.*--transcript-type phones"):
            TextFrontEnd(FRONT_ENDS[kind], unknown_symbols="drop").encode(text, where="a.tsv:2")


def test_latin_text_is_never_refused_by_cleaners() -> None:
    text = "A café in Straße 5, “hello,” said Łukasz… £3 ﬁne Ａ Ⅳ ① ½ ª º µ naïve\u0301 soft\u00adhyphen \ufeffmark"
    for kind in ("v3", "v1", "v2"):
        front_end = TextFrontEnd(FRONT_ENDS[kind], unknown_symbols="drop")
        assert all(symbol.isascii() for symbol in front_end.encode_words([Span(text)]).dropped)


def test_errors_quote_the_text_or_say_that_it_is_the_reading() -> None:
    for kind, text, message in (
        ("v1", "“No,” he said.", "'\"' (U+0022) of the reading '\"no,\" he said.'"),
        ("v1", 'A "quote" [x]', "'\"' (U+0022), '[' (U+005B), ']' (U+005D) not in symbol set english_basic"),
        ("basic", "say {QQ AH0}", "'QQ' (U+0051 U+0051) not in"),
    ):
        with pytest.raises(InputError) as error:
            TextFrontEnd(FRONT_ENDS[kind]).encode(text)
        assert repr(text) in str(error.value) and message in str(error.value)


@pytest.mark.parametrize("kind", FRONT_ENDS)
def test_what_is_too_long_for_an_utterance_or_a_word_is_refused(kind: str) -> None:
    for text, wanted in (
        ("two " * 5001, "20004 .* 20000 of an utterance"),
        ("I" * 1001, "1001 .* 1000 between spaces"),
    ):
        with pytest.raises(InputError, match=rf"^'.*\.\.\.': {wanted} \(list\.txt:3\)$"):
            TextFrontEnd(FRONT_ENDS[kind]).encode(text, where="list.txt:3")
