"""Words that are spelled alike and said in two ways are said as their context asks, where a voice is given phones."""

from dataclasses import replace
from pathlib import Path

import pytest

from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.text.heteronyms import read_heteronyms
from common.text.normalization.english.english import read_english
from common.text.ssml import Span

TABLE = Path(__file__).parent / "text_cases" / "heteronyms.tsv"
CASES = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
SPELLED = TextConfig(cleaners=("english_cleaners_v3",), p_arpabet=1.0)
PHONES = TextConfig("phone", "ipa_marked", ("english_cleaners_v3",), g2p="espeak")


@pytest.mark.parametrize(("sentence", "words"), CASES, ids=[sentence for sentence, _ in CASES])
def test_a_word_is_said_as_its_context_asks(sentence: str, words: str) -> None:
    text = read_english(sentence)
    found = [f"{text[one.start : one.end]} {one.arpabet}" for one in read_heteronyms(text)]
    assert ", ".join(found) == words


def spoken(text: str, config: TextConfig) -> str:
    front_end = TextFrontEnd(config)
    ids = front_end.encode(text)
    assert list(front_end.encode_words([Span(text)]).ids) == ids
    said = front_end.decode(ids)
    return said if config.g2p is None else said.replace(" ", "").replace("#", " ").removeprefix("sil")[:-3]


@pytest.mark.parametrize(
    ("text", "phones"),
    [
        ("Lead pipes.", "lˈɛd pˈaɪps."),
        ("Lead the way.", "lˈiːd ðə wˈeɪ."),
        ("He read it.", "hiː ɹˈɛd ɪt."),
        ("Use the use.", "jˈuːz ðə jˈuːs."),
        ("The dove dove.", "ðə dˈʌv dˈoʊv."),
        ("bass fishing, bass guitar", "bˈæs fˈɪʃɪŋ,bˈeɪs ɡɪtˈɑːɹ"),
        ("They object. We go.", "ðeɪ ɑːbd͡ʒˈɛkt wiː ɡˈoʊ."),
    ],
)
def test_espeak_says_it_among_the_other_words(text: str, phones: str) -> None:
    assert spoken(text, PHONES) == phones


def test_a_voice_of_letters_that_knows_phones_gets_them() -> None:
    assert spoken("Lead pipe.", SPELLED) == "{L EH1 D} {P AY1 P}."
    assert spoken("They lead.", SPELLED) == "{DH EY1} lead."


def test_published_cleaners_and_lists_of_ones_own_leave_them_letters() -> None:
    for config in (replace(SPELLED, cleaners=("english_cleaners",)), replace(SPELLED, heteronyms="lead\n")):
        assert spoken("Lead pipe.", config) == "lead {P AY1 P}."


def test_brackets_of_a_text_are_no_phones() -> None:
    config = TextConfig("phone", "ipa_marked", (), g2p="espeak", g2p_language="de")
    spoken("He read it.", PHONES)  # after which eSpeak NG's library reads phones
    assert spoken("ein [[h'allo]] Wort", config) == spoken("ein [ [h'allo]] Wort", config)
