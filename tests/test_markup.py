"""Markup and long texts become utterances: nothing is lost, and time is linear. Cases stand in text_cases."""

import itertools
import random
import time
from contextlib import suppress

import pytest
from front_ends import FRONT_ENDS

from common.errors import InputError
from common.text import sentences
from common.text.front_end import TextFrontEnd
from common.text.markdown import read_text
from common.text.prosody import Style
from common.text.sentences import TextUtterance, split_utterances
from common.text.ssml import NEUTRAL, Boundary, Item, Pause, Span, has_markup, read_markup

FAST, SLOW = Style(rate=2.0), Style(rate=0.5)


def said(utterance: TextUtterance) -> str:
    return "".join(span.text for span in utterance.spans)


def texts(text: str, **options: int) -> list[str]:
    """The text of each utterance."""
    return [said(one) for one in split_utterances(read_markup(text), **options)]


def bare(text: str) -> str:
    return "".join(text.split())


PLAIN = (
    *("Hello there.", "", "a < b", "x<3", "x <3 and y> 2", "AT&T", "R&D", "a<b and c>d", "x<p and q>3", "<speaker>"),
    *("a &amp; b", "<b>bold</b>", "<br/>", "p < s > w", "{HH AH0}", "\x00", "\ud800", "s<s", "<Break/>", "&nbsp;"),
)


@pytest.mark.parametrize("text", PLAIN)
def test_a_text_without_elements_stays_as_it_is(text: str):
    assert not has_markup(text) and read_markup(text) == [Span(text)]


@pytest.mark.parametrize("text", ["<break/>", "a<break\n/>b", "<p>a</p>", "</s>", "<s xml:lang='en'>", "<speak"])
def test_a_tag_of_an_element_is_markup(text: str):
    assert has_markup(text)


def test_breaks_and_languages_have_limits():
    with pytest.raises(InputError, match=r"^line 1, column 1141: .* at most 600s of breaks"):
        read_markup("<break time='10s'/>" * 61)
    assert read_markup("<speak xml:lang='de-AT'>Hallo</speak>", language="de") == [Span("Hallo")]
    assert read_markup("<lang xml:lang='zh'>x</lang>", language="cmn") == [Span("x")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello. ... There", ["Hello. ...", "There"]),
        ("One.\n\n* * *\n\nTwo.", ["One.\n\n* * *", "Two."]),
        ("Hello <break/>.", ["Hello."]),
        ("<voice name='a'>Hi</voice>. <voice name='b'>You</voice>!", ["Hi.", "You!"]),
        ('"<voice name="a">Hi</voice>" he said', ['"Hi', '" he said']),
        ("...", ["..."]),
        ("", []),
    ],
)
def test_what_has_nothing_to_say_stays_with_its_neighbor(text: str, expected: list[str]):
    assert texts(text) == expected


def test_what_is_never_cut_stays_whole_wherever_a_cut_would_fall():
    for before, inside in itertools.product(range(20), range(1, 18)):
        phones = "{" + "A" * inside + "}"
        parts = split_utterances([Span("x" * before + phones + "y" * 19)], most=20)
        assert sum(phones in said(one) for one in parts) == 1 and not any(one.pause for one in parts), (before, inside)


def test_sentences_stay_together_up_to_a_length_and_long_ones_are_cut():
    assert [len(one) for one in texts("One two. " * 10, longest=30)] == [26, 26, 26, 8]
    assert texts("A b. C d.\n\nE f. <break/>G h.", longest=100) == ["A b. C d.", "E f.", "G h."]
    clauses = "word " * 60 + "end; " + "word " * 30 + "more, " + "word " * 50
    first, *_ = split_utterances([Span(clauses)])
    assert (said(first)[-5:], first.pause) == (" end;", sentences.SEMICOLON)
    first, *_ = split_utterances([Span(clauses.replace(";", ","))])
    assert (said(first)[-5:], first.pause) == (" end,", sentences.COMMA)
    words = split_utterances([Span("word " * 200)])
    assert [(len(said(one)), one.pause) for one in words[:-1]] == [(334, sentences.SPACE), (334, sentences.SPACE)]
    assert [len(one) for one in texts("x" * 1000)] == [334, 333, 333]
    braces = "{" + "A " * 150 + "}"
    assert texts("x" * 100 + braces + "y" * 50) == ["x" * 100, braces + "y" * 50]


WORDS = [
    *"Mr. Dr. J. K. U.S. e.g. etc. No. 5 3.14 p.m. Hello world I said You then".split(),
    *", ; : . ... ? ?! ! … \" ' ( ) [ ] “ ” — -".split(),
    *"{HH AH0} 。 ！ 你好 ， https://a.b/c?d 1. * & \n \n\n Jan. The".split(" "),
    *("x" * 300, "word " * 100, "...", "! ", '." ', "\n\n"),
]


def random_items(draw: random.Random) -> list[Item]:
    items: list[Item] = []
    for _ in range(draw.randrange(1, 12)):
        separator = draw.choice(["", " ", " "])
        text = separator.join(draw.choice(WORDS) for _ in range(draw.randrange(1, 12)))
        style = draw.choice([NEUTRAL, NEUTRAL, FAST, Style(speaker="a")])
        items.append(Span(text, style, source=draw.choice([None, None, None, "source"])))
        if draw.random() < 0.2:
            items.append(draw.choice([Pause(0.5), Boundary("sentence"), Boundary("paragraph")]))
    return items


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_lost_and_splitting_again_changes_nothing(seed: int):
    items = random_items(random.Random(seed))
    longest = seed % 3 * 100
    utterances = split_utterances(items, longest=longest)
    spans = [item for item in items if isinstance(item, Span)]
    assert bare("".join(map(said, utterances))) == bare("".join(span.text for span in spans))
    for one in utterances:
        assert said(one) == said(one).strip()
        assert len({span.style.speaker for span in one.spans}) <= 1
        again = split_utterances(one.spans, longest=longest)
        assert [part.spans for part in again] == ([one.spans] if one.spans else [])
    # Each character that is said keeps its style, but for the speaker of what has nothing to say.
    before = [(letter, span.style, span.source) for span in spans for letter in span.text if letter.isalnum()]
    after = [(c, span.style, span.source) for one in utterances for span in one.spans for c in span.text if c.isalnum()]
    assert after == before


LONG = ["-" * 3999 + "!", "| " * 1999 + "a", "- |" * 1333 + "a", "(" * 2000 + ")" * 2000, "# " + "#" * 3990 + "a"]
LONG += ["`" + " " * 3999, "`" * 2000 + "a" * 2000, "ChatGPT " + "camelCase" * 200]
LONG += [part * (4000 // len(part)) for part in ("$5 ", "3x^2 ", "[a](", "<b", "¹²³", "1.234. ", "a/b/c/")]


@pytest.mark.parametrize("text", LONG, ids=[text[:5] + text[-5:] for text in LONG])
def test_the_longest_text_of_a_request_is_planned_in_seconds(text: str) -> None:
    front_end = TextFrontEnd(FRONT_ENDS["v3"], unknown_symbols="drop")
    start = time.process_time()
    for one in split_utterances(read_text(text)):
        with suppress(InputError):  # nothing of it is said
            front_end.encode_words(one.spans)
    assert time.process_time() - start < 20  # s; about 0.5, and 60 where a pattern takes cubic time
