"""english_cleaners_v3 reads aloud what a person would, whatever the text holds."""

import random
import re
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from shell import ROOT

from common.errors import InputError
from common.text.config import TextConfig
from common.text.front_end import TextFrontEnd
from common.text.markdown import read_text
from common.text.normalization.english.english import read_english
from common.text.sentences import split_utterances
from common.text.ssml import Boundary, Pause, Span

TABLE = Path(__file__).parent / "text_cases" / "english_v3.tsv"
_ARPABET = re.compile(r"\{[A-Z0-9 ]+\}")
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyz-!'(),.:;? ")


CASES = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("# ")]


@pytest.mark.parametrize(("phrase", "reading"), CASES, ids=[phrase for phrase, _ in CASES])
def test_a_phrase_is_read_rightly(phrase: str, reading: str) -> None:
    assert read_english(phrase) == reading


PLAIN = [line.split("\t") for line in (TABLE.parent / "plain_texts.tsv").read_text(encoding="utf-8").splitlines()[1:]]
V3 = TextConfig("phone", "espeak", ("english_cleaners_v3",), g2p="espeak")


@pytest.mark.parametrize("row", PLAIN, ids=[row[0] for row in PLAIN])
def test_a_pasted_text_is_read_without_its_signs(row: list[str]) -> None:
    """What is said of Markdown, HTML and formulas, and the pauses that eSpeak NG would leave out."""
    front_end = TextFrontEnd(V3)
    said = [one for one in split_utterances(read_text(row[0].replace("\\n", "\n"))) if one.spans]
    encoded = [front_end.encode_words(one.spans) for one in said]
    assert " | ".join(one.reading for one in encoded) == row[1]
    phones = [front_end.decode(list(one.ids)).removeprefix("sil ").removesuffix(" sil") for one in encoded]
    if len(row) > 2:
        assert " | ".join(one.replace(" ", "").replace("#", " ").strip() for one in phones) == row[2]


LONG = ["-" * 3999 + "!", "| " * 1999 + "a", "- |" * 1333 + "a", "(" * 2000 + ")" * 2000, "# " + "#" * 3990 + "a"]
LONG += ["`" + " " * 3999, "`" * 2000 + "a" * 2000]
LONG += [part * (4000 // len(part)) for part in ("$5 ", "3x^2 ", "[a](", "<b", "¹²³", "1.234. ", "camelCase", "a/b/c/")]


@pytest.mark.parametrize("text", LONG, ids=[text[:5] + text[-5:] for text in LONG])
def test_the_longest_text_of_a_request_is_planned_in_seconds(text: str) -> None:
    front_end = TextFrontEnd(
        replace(V3, input_type="char", symbol_set="english_basic", g2p=None), unknown_symbols="drop"
    )
    start = time.process_time()
    for one in split_utterances(read_text(text)):
        with suppress(InputError):  # nothing of it is said
            front_end.encode_words(one.spans)
    assert time.process_time() - start < 20  # s; about 0.5, and 60 where a pattern takes cubic time


def test_pause_tags_are_silence_and_boundaries_stand_after_items() -> None:
    assert read_text("[pause:1s] Hello[pause 250ms]you [silence: 99]")[:-1] == [
        *(Span(""), Pause(1.0), Span("Hello"), Pause(0.25), Span("you"), Pause(10.0), Span(""))
    ]
    sentence, paragraph = Boundary("sentence"), Boundary("paragraph")
    assert read_text("# A\nB\n- c\n\nD") == [
        *(Span("A."), sentence, Span("B."), sentence, Span("c."), paragraph, Span("D"), paragraph)
    ]


@pytest.mark.parametrize("text", ["Two words, 3 < 4.", "Lines\nof text", "-5 and *, a_b", "{HH AH0}", "x\ty "])
def test_a_text_without_signs_stays_as_it_is(text: str) -> None:
    assert read_text(text) == [Span(text)]


def test_signs_of_markdown_stay_in_plain_text_and_in_ssml() -> None:
    assert read_text("# *One*\n- two", markdown=False) == [Span("# *One*\n- two")]
    assert read_text("<s>*One*</s> two <break time='1s'/>")[0] == Span("*One*")
    with pytest.raises(InputError, match="<b>: expected an element of SSML"):
        read_text("<b>One</b> <break/>")


def test_other_languages_are_read_without_signs_and_with_pauses_at_dashes() -> None:
    german = TextFrontEnd(TextConfig("phone", "espeak", (), g2p="espeak", g2p_language="de"))
    items = read_text("## Über uns\n* Der *alte* Mann - müde - ging &amp; kam.", language="de")
    said = [german.encode_words(one.spans) for one in split_utterances(items)]
    assert [one.reading for one in said] == ["Über uns.", "Der alte Mann - müde - ging und kam."]
    assert german.decode(list(said[1].ids)).count(",") == 2


def _random_texts(seed: int, count: int) -> list[str]:
    """Words of the table in any order, strings of the signs that rules look at, and any Unicode."""
    generator = random.Random(seed)
    words = [word for phrase, _ in CASES for word in phrase.split()]
    signs = "0123456789.,$£€% xmbstndrIVXAB:-'\"/ap#&@+=<>()°~^*_{}St.Dr No"
    texts = []
    for _ in range(count // 3):
        texts.append(" ".join(generator.choices(words, k=generator.randrange(1, 9))))
        texts.append("".join(generator.choices(signs, k=generator.randrange(1, 40))))
        points = [generator.randrange(0xD800) for _ in range(generator.randrange(1, 12))]
        texts.append("".join(map(chr, points)) + "".join(generator.choices(signs, k=8)) + "\U0001f600\ud800")
    return texts


def test_a_long_word_of_capitals_and_small_letters_is_read_at_once() -> None:
    assert read_english("ChatGPT " + "camelCase" * 200).startswith("chat g.p.t. camelcase")  # 2 ** 200 ways before


def test_any_text_gives_only_lower_case_letters_and_marks_which_are_read_as_themselves() -> None:
    for text in [phrase for phrase, _ in CASES] + _random_texts(1, 2000):
        once = read_english(text)
        assert set(_ARPABET.sub("", once)) <= _LEGAL, text
        assert read_english(once) == once, text


def test_curly_brace_arpabet_stays_verbatim_and_other_braces_go() -> None:
    assert read_english("{HH AH0 L OW1}, Dr. {R IY1 D}!") == "{HH AH0 L OW1}, doctor {R IY1 D}!"
    assert read_english("{hello} {HH QQ} {}") == "hello h.h. q.q."


def test_real_transcripts_keep_their_words(shared_data: Path) -> None:
    """LJSpeech's transcripts come with their numbers and titles written out by people; ours have the same words,
    but for the abbreviations that those leave as they are (i.e., e.g., etc., MSS.)."""
    lines = (shared_data / "LJSpeech-sample" / "metadata.csv").read_text(encoding="utf-8").splitlines()
    differing = 0
    for line in lines:
        _, raw, normalised = line.split("|")
        words = [re.sub(r"[^a-z' ]", " ", text.lower()).split() for text in (read_english(raw), normalised)]
        if words[0] != words[1]:
            assert re.search(r"\b(?:i\.e|e\.g|etc|MSS)\.", normalised), line
            differing += 1
    assert len(lines) == 80
    assert differing <= 4


def test_the_readings_in_the_documents_are_those_of_the_cleaner() -> None:
    page = (ROOT / "docs" / "TEXT.md").read_text(encoding="utf-8")
    table = page.partition("| kind | text | reading |\n| --- | --- | --- |\n")[2].partition("\n\n")[0]
    cells = [re.split(r"\s*\|\s*", row.strip("| ")) for row in table.split("\n")]
    pairs = [pair for _, texts, words in cells for pair in zip(re.findall("`([^`]*)`", texts), words.split("; "))]
    assert len(pairs) > 50
    assert [(text, words, read_english(text)) for text, words in pairs if read_english(text) != words] == []
